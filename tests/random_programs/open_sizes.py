"""Random programs over inputs with dimensions of open size, each run at several sizes.

The steps are those of `general.py`. PyTorch runs a program at all its sizes while it grows, so that it is the
same program at each. On XLA one executable serves them all, and what lies in the padding is hostile.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch

import tenfold as tn
from tenfold.compiler import mark_dynamic
from tenfold.engines import xla
from tenfold.engines.numpy.plan import run as on_tier_0
from tenfold.runtime import evaluate
from tests.random_programs.general import DTYPES, STEPS, kind_of
from tests.random_programs.programs import Program, Use, apply

N = None  # an open size
SHAPES = ((N, 4), (4,), (N, 1), (), (2, N, 4), (N,), (N, N), (3, 4), (N, 3))
SMALLEST, LARGEST = 5, 16


def grow(seed: int, length: int = 12, sizes: int = 4) -> list[Program]:
    """A program at several sizes, the largest among them: steps that PyTorch refuses at any are left out."""
    draw = random.Random(seed)
    extents = [*draw.sample(range(SMALLEST, LARGEST), sizes - 1), LARGEST]
    draw.shuffle(extents)
    shapes = [draw.choice([shape for shape in SHAPES if N in shape]), *draw.choices(SHAPES, k=2)]
    dtypes = draw.choices(DTYPES, k=3)
    contents = draw.getrandbits(32)
    inputs = [_inputs(contents, dtypes, shapes, extent) for extent in extents]
    pools = [[torch.from_numpy(array.copy()) for array in arrays] for arrays in inputs]
    uses: list[Use] = []
    for _ in range(3 * length):
        step = draw.choice(STEPS)
        places = tuple(draw.randrange(len(pools[0])) for _ in range(step.operands))
        use = Use(step, places, draw.randrange(4))
        if kind_of(pools[0][places[0]]) not in step.kinds:
            continue
        trial = copy.deepcopy(pools)  # in which views are views
        try:
            results = [apply(torch, pool, use) for pool in trial]
        except (RuntimeError, IndexError, TypeError):
            continue
        if any(result.numel() > 5000 or result.ndim > 4 or result.is_complex() for result in results):
            continue
        pools = trial
        uses.append(use)
        if len(uses) == length:
            break
    open_axes = frozenset(
        (i, axis) for i, shape in enumerate(shapes) for axis, n in enumerate(shape) if n is N
    )
    names = [f"open program {seed} of length {length} at size {extent}" for extent in extents]
    return [
        Program(name, arrays, uses, frozenset(), pool, open_axes=open_axes)
        for name, arrays, pool in zip(names, inputs, pools, strict=True)
    ]


def _inputs(seed: int, dtypes: Sequence[str], shapes: Sequence[Any], extent: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for dtype, shape in zip(dtypes, shapes, strict=True):
        filled = [extent if n is N else n for n in shape]
        numbers = rng.normal(0, 1, filled) if dtype[0] == "f" else rng.integers(0, 5, filled)
        arrays.append(np.asarray(numbers).astype(dtype))
    return arrays


def run_open(programs: Sequence[Program]) -> list[list[tn.Tensor]]:
    """Run one program at several sizes by one executable, or by one for each size where it cannot be open."""
    uses = programs[0].uses

    def function(*inputs: tn.Tensor) -> list[tn.Tensor]:
        pool = [x.clone() for x in inputs]
        for use in uses:
            apply(tn, pool, use)
        return pool

    compiled = tn.compile(function)
    with warnings.catch_warnings(), hostile_padding():
        warnings.filterwarnings("ignore", "compile. sizes stay closed", UserWarning)
        pools = [compiled(*_marked(program)) for program in programs]
    counts["open" if "any size" in compiled.guards() else "closed"] += 1
    return pools


counts = {"open": 0, "closed": 0}  # programs that `run_open` ran


def _marked(program: Program) -> list[tn.Tensor]:
    tensors = [tn.tensor(array) for array in program.inputs]
    for place, axis in program.open_axes:
        mark_dynamic(tensors[place], axis, min=SMALLEST, max=LARGEST)
    return tensors


@contextmanager
def hostile_padding() -> Iterator[None]:
    """Fill padding with NaN, or with a large number where there is none."""
    with mock.patch.object(evaluate, "blank", hostile):
        yield


def hostile(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.full(shape, np.nan if dtype.kind == "f" else np.array(77777).astype(dtype), dtype)


def interpreted(function: Any, device: Any, donated: Any, packing: Any) -> Any:
    """In the place of an executable of an open program: tier 0, which compiles nothing."""

    def call(buffers: Any, held: list[Any], ahead: bool = False) -> tuple[list[Any], None]:
        results = on_tier_0(function, [np.array(xla.fetch(buffer)) for buffer in buffers])
        return [xla.put(np.array(result), device) for result in results], None

    call.checks, call.executable = (), None  # type: ignore[attr-defined]
    return call
