"""Runs a program twice in one process: `python twice.py PROGRAM ARGUMENTS`, on either engine.

The first run is what its user waits for. The second finds packages imported and programs compiled: it is
timed as warm. The numbers of both are compared."""

import os
import runpy
import sys
import time

import stages
import torch

# torchvision's compiled part is made for another build of PyTorch. Its Python part only wants the names of
# its operators to be known, which no program here calls.
if os.environ["ECOSYSTEM_ENGINE"] == "pytorch":
    for name in ("nms", "qnms"):
        torch.library.define(
            f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        )
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
stages.run_again()
start = time.perf_counter()
runpy.run_path(sys.argv[0], run_name="__main__")
stages.finish(time.perf_counter() - start)
