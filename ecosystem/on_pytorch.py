"""Runs a program on PyTorch: `python on_pytorch.py PROGRAM ARGUMENTS`.

torchvision's compiled part is made for another build of PyTorch. Its Python part only wants the names of its
operators to be known, which no program here calls."""

import runpy
import sys

import torch

for name in ("nms", "qnms"):
    torch.library.define(
        f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    )
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
