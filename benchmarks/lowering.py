"""What the choices of our lowering are worth: training steps of an MLP, a CNN and a GPT on the CPU as they
are, with one choice at a time taken back, and by PyTorch eager. `python -m benchmarks.lowering` prints it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.harness import ROOT
from benchmarks.models import TASKS
from benchmarks.training import initial_weights, pytorch, tenfold
from tenfold.engines import xla
from tenfold.flat import contracting, folding, grad_products, grad_windows
from tenfold.flat.build import constant, ge, isnan
from tenfold.flat.grad_folds import wide
from tenfold.flat.ir import TensorType, Value
from tenfold.flat.windows import ReduceWindow, SelectAndScatter
from tenfold.ops import sliding
from tenfold.runtime import checks


def by_ynnpack() -> None:
    xla.OPTIONS["cpu"].clear()


def by_taps() -> None:
    sliding.DIRECT = ()  # type: ignore[assignment]


def by_scattering() -> None:
    def scattered(ct: Value, op: ReduceWindow) -> Value:
        (x,) = op.inputs
        scalars = [TensorType(x.dtype, ())] * 2
        select = folding.function(lambda kept, new: ge(kept, new) | isnan(kept), scalars)
        sizes = op.window_dimensions, op.window_strides, op.padding
        return SelectAndScatter(
            x, ct, constant(0, x.dtype), *sizes, select, folding.monoid("add", x.dtype)
        ).result

    grad_windows._apart = scattered


def unflattened() -> None:
    def product(x: Value, y: Value, x_summed: Sequence[int], y_summed: Sequence[int]) -> Value:
        return contracting.dot_general(x, y, (x_summed, y_summed), dtype=wide(x.dtype))

    grad_products.product = product


def copied_first() -> None:
    checks.updated_last = lambda function, donated: function


def by_ynnpack_always() -> None:
    xla.LONG = 0


CHOICES: dict[str, tuple[str, Callable[[], None]]] = {
    "ynnpack": ("convolutions by YNNPACK", by_ynnpack),
    "taps": ("convolutions as a product for each tap", by_taps),
    "scatter": ("max pool's gradient by select_and_scatter", by_scattering),
    "unflattened": ("gradients of products in all their dimensions", unflattened),
    "copies": ("weights copied before they are updated", copied_first),
    "reductions": ("small reductions by YNNPACK", by_ynnpack_always),
}
ROWS = {
    "mlp": ("as it is", "copies", "reductions", "PyTorch"),
    "cnn": ("as it is", "ynnpack", "taps", "scatter", "PyTorch"),
    "gpt": ("as it is", "unflattened", "copies", "PyTorch"),
}


def milliseconds(task_name: str, row: str) -> float:
    task = TASKS[task_name]
    if row in CHOICES:
        CHOICES[row][1]()
    weights = initial_weights(task)
    step = pytorch(task, weights, False) if row == "PyTorch" else tenfold(task, weights, compiled=True)
    for _ in range(3):
        step()
    samples = []
    end = time.perf_counter() + 5
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        samples.append(time.perf_counter() - start)
    return min(samples) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lowering",
        description=__doc__,
        epilog="example: python -m benchmarks.lowering",
    )
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "ROW"), help=argparse.SUPPRESS)
    one = parser.parse_args().one
    if one:
        print(json.dumps(milliseconds(*one)))
        return
    for task, rows in ROWS.items():
        first = None
        for row in rows:  # each in a process of its own: what is lowered once is kept
            command = [sys.executable, "-m", "benchmarks.lowering", "--one", task, row]
            output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
            found = json.loads(output.splitlines()[-1])
            first = first or found
            name = CHOICES[row][0] if row in CHOICES else row
            print(f"{task:5}{name:50}{found:>9.1f} ms{found / first:>7.2f} x", flush=True)


if __name__ == "__main__":
    main()
