"""What `tenfold demo` does: one small program recorded, shown at every stage, timed each way to run it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from tenfold import eval, ones, randn
from tenfold.program import compile, show
from tenfold.random import manual_seed
from tenfold.runtime.evaluate import counting_compiles
from tenfold.tensor import Tensor

SIZE = 256


def program(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """A layer of a network and a loss: what the demonstration runs."""
    hidden = (x @ w + b).tanh()
    return ((hidden - x) ** 2).mean()


def run(console: Console) -> None:
    console.rule("a program at every stage")
    small = ones(2, 3), ones(3, 3), ones(3)
    console.print(show(program, *small), markup=False)
    console.rule(f"timing it, x of {SIZE}×{SIZE}")
    manual_seed(0)
    inputs = randn(SIZE, SIZE), randn(SIZE, SIZE), randn(SIZE)
    eval(*inputs)
    table = Table("how", "first call", "each call after", box=None, pad_edge=False)
    with counting_compiles() as compiles:
        table.add_row("recorded lazily", *_timed(lambda: program(*inputs).item()))
        compiled = compile(program)
        table.add_row("tenfold.compile", *_timed(lambda: compiled(*inputs).item()))
    console.print(table)
    console.print(f"XLA compiled {int(compiles)} programs for all of these calls")
    _second_start(console)


def _timed(call: Callable[[], object], repeats: int = 50) -> tuple[str, str]:
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return f"{first * 1e3:.1f} ms", f"{sorted(times)[repeats // 2] * 1e3:.3f} ms"


START = """
import time
start = time.perf_counter()
import tenfold as tn
from tenfold.demo import program
x = program(tn.ones(256, 256), tn.ones(256, 256), tn.ones(256)).item()
print(time.perf_counter() - start)
"""


def _second_start(console: Console) -> None:
    """The same program in two new processes that share an empty cache: the second finds it compiled."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", START],
                env={**os.environ, "TENFOLD_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            seconds.append(float(done.stdout))
    console.print(
        f"a new process, import to result: {seconds[0]:.2f} s compiling, "
        f"{seconds[1]:.2f} s when the program is on disk"
    )
