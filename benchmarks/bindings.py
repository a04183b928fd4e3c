"""The R package beside PyTorch's Python: one addition, and a training loop written in R, or one call a step.
Every sample is a process of its own that prints the seconds of one of them, warmed up, on one thread."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.harness import OURS, ROOT, Benchmark, Sample
from tenfold.capi.r_package import install

R_PRELUDE = """
suppressPackageStartupMessages(library(tenfold))
torch_set_num_threads(1)
timed <- function(code, runs) {
  for (i in seq_len(runs %/% 5)) code()
  start <- Sys.time()
  for (i in seq_len(runs)) code()
  cat(as.numeric(Sys.time() - start, units = "secs") / runs)
}
"""
R_ADD = """
x <- torch_ones(1)
y <- torch_ones(1)
timed(function() x + y, 50000)
"""
R_MODEL = """
torch_manual_seed(0)
x <- torch_randn(64, 64)
y <- torch_randint(1, 11, c(64), dtype = torch_long())
network <- nn_sequential(nn_linear(64, 32), nn_tanh(), nn_linear(32, 10))
optimizer <- optim_adam(network$parameters, lr = 0.01)
"""
R_LOOP = """
timed(function() {
  optimizer$zero_grad()
  loss <- nnf_cross_entropy(network(x), y)
  loss$backward()
  optimizer$step()
}, 1500)
"""
R_STEP = """
traced <- jit_trace(network, x)
timed(function() jit_train_step(traced, optimizer, "cross_entropy", x, y), 1500)
"""
PYTHON_PRELUDE = """
import time, torch
torch.set_num_threads(1)
def timed(code, runs):
    for _ in range(runs // 5): code()
    start = time.perf_counter()
    for _ in range(runs): code()
    print((time.perf_counter() - start) / runs)
"""
PYTHON_ADD = """
x, y = torch.ones(1), torch.ones(1)
timed(lambda: x + y, 50000)
"""
PYTHON_LOOP = """
torch.manual_seed(0)
x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(network(x), y).backward()
    optimizer.step()
timed(step, 1500)
"""


def printing(*command: str, **variables: str) -> Sample:
    """The seconds that a program prints."""

    def sample() -> float:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        return float(done.stdout)

    return sample


def in_r(folder: Path, name: str, code: str) -> Sample:
    library = install(ROOT / "build/r/tenfold", ROOT / "build/r-library")
    script = folder / f"{name}.R"
    script.write_text(R_PRELUDE + code, encoding="utf-8")
    return printing("Rscript", "--vanilla", str(script), R_LIBS=str(library))


def in_python(code: str) -> Sample:
    return printing(sys.executable, "-c", PYTHON_PRELUDE + code)


def contenders(ours: str, python: str, **others: str) -> Callable[[Path], Mapping[str, Sample]]:
    def prepare(folder: Path) -> Mapping[str, Sample]:
        found = {OURS: in_r(folder, "ours", ours), "PyTorch": in_python(python)}
        return found | {name: in_r(folder, name, code) for name, code in others.items()}

    return prepare


BENCHMARKS = (
    Benchmark("r-add", "R: x + y of one element", "PyTorch", 4, contenders(R_ADD, PYTHON_ADD), 5),
    Benchmark(
        "r-loop", "R: a training loop in R", "PyTorch", 1, contenders(R_MODEL + R_LOOP, PYTHON_LOOP), 5
    ),
    Benchmark(
        "r-step",
        "R: a training step in one call",
        "loop",
        1,
        contenders(R_MODEL + R_STEP, PYTHON_LOOP, loop=R_MODEL + R_LOOP),
        5,
    ),
)
