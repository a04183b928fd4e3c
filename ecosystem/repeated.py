"""Runs a program four times in one process: `python repeated.py PROGRAM ARGUMENTS`, on either engine.

The first run is what its user waits for, and is interpreted where that is quicker. The last is timed as warm:
it finds everything imported, and what Tenfold has met often enough to pay is compiled: what it compiles in
the background is waited for between the runs. The numbers of all are compared."""

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
start = float(os.environ["ECOSYSTEM_START"])
# A process joins a group of processes once; of such a program the first run is timed, by its first process.
for name in ("first",) if "WORLD_SIZE" in os.environ else ("first", "second", "third", "warm"):
    stages.begin(name)
    runpy.run_path(sys.argv[0], run_name="__main__")
    if os.environ.get("RANK", "0") == "0":
        stages.finish(name, time.time() - start)
    if os.environ["ECOSYSTEM_ENGINE"] == "tenfold":
        from tenfold.runtime.background import background

        background.wait()
    start = time.time()
