"""Every row on numbers at which naive formulas overflow, cancel or lose digits.

The same samples as everywhere, their float32 tensors drawn large, far from zero, huge and tiny. What is exact
is PyTorch's answer in float64. Ours may be as far from it as PyTorch's own float32 answer, or as a change of
the arguments by their last bit takes it, and not much further.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.ops.samples import Matrices, T
from tenfold.ops.table import Row, all_rows
from tests.ops import generate, golden

ROWS = sorted((row for row in all_rows() if not (row.random or row.differs)), key=lambda row: row.qualified)
# What a drawn number becomes, by what goes wrong there: exp overflows beyond 88, differences of numbers near
# each other lose their digits, squares leave float32 above 1.8e19 and vanish below 1e-23.
MAGNITUDES = {
    "large": lambda drawn: drawn * 60,
    "offset": lambda drawn: drawn + 4000,
    "huge": lambda drawn: drawn * 1e25,
    "tiny": lambda drawn: drawn * 1e-25,
}
SAMPLES = 6  # of each row, the first: the plain shapes come first
# How many times as far from the exact value ours may be, and how far in any case.
MARGIN, RTOL = 4.0, 3e-6
LAST_BIT = 2.0**-24


class Scaled(golden.Call):
    """A sample whose tensors of the dtype under test are of another magnitude, where it sets no range."""

    magnitude = "large"

    def __init__(self, row: Row, number: int, sample: Any, magnitude: str):
        self.magnitude = magnitude
        self.scaled = False
        super().__init__(row, number, sample, dtypes.float32)

    def _drawn(self, value: Any, rng: np.random.Generator) -> Any:
        elements = super()._drawn(value, rng)
        free = isinstance(value, T) and value.dtype is None and value.low is None and value.high is None
        if free and not isinstance(value, (Matrices, generate.Edges)):
            self.scaled = True
            return np.asarray(MAGNITUDES[self.magnitude](elements), np.float32)
        return elements

    def exactly(self, seed: int | None = None) -> list[Any]:
        """PyTorch's results from the same numbers in float64, or from some that are off by their last bit."""
        rng = np.random.default_rng(seed)
        perturbed = LAST_BIT if seed is not None else 0

        def widened(argument: Any, value: Any) -> Any:
            if isinstance(value, np.ndarray) and value.dtype == np.float32:
                signs = rng.choice([-1.0, 1.0], value.shape)
                return golden.to_torch(
                    np.asarray(value.astype(np.float64, order="K") * (1 + perturbed * signs))
                )
            if isinstance(value, tuple):
                return [widened(argument, each) for each in value]
            return golden.as_torch(argument, value)

        args, kwargs = self.arguments(widened)
        return golden.flattened(golden.quietly(golden.overload(self.row), *args, **kwargs))

    def __str__(self) -> str:
        return f"{self.magnitude} {self.sample}"


@pytest.mark.parametrize("row", ROWS, ids=[row.qualified for row in ROWS])
def test_row_keeps_the_digits_that_pytorch_keeps(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_TIER", "numpy")  # the formulas are the same, and nothing is compiled
    wrong: list[str] = []
    for number, sample in generate.for_dtype(row, dtypes.float32)[:SAMPLES]:
        for magnitude in MAGNITUDES:
            call = Scaled(row, number, sample, magnitude)
            if call.scaled:
                wrong += [f"{call}: {each}" for each in compared(call)]
    assert not wrong, "\n  ".join([f"aten::{row.qualified}, {len(wrong)} wrong:", *wrong[:20]])


def compared(call: Scaled) -> list[str]:
    """How our results differ, in a line each. Calls that PyTorch refuses in float64 have nothing exact."""
    try:
        theirs, exact = golden.flattened(call.theirs()), call.exactly()
        near = zip(*[call.exactly(seed) for seed in range(4)])
    except Exception:
        return []
    try:
        ours = golden.flattened(call.ours())
        tn.eval(*[each for each in ours if isinstance(each, tn.Tensor)])
    except TenfoldError as error:
        return [f"PyTorch runs it, we raise {type(error).__name__}: {error.message}"]
    results = zip(ours, theirs, exact, near, strict=True)
    return [found for each in results if isinstance(each[1], torch.Tensor) and (found := difference(*each))]


def difference(
    ours: tn.Tensor, theirs: torch.Tensor, exact: torch.Tensor, near: tuple[torch.Tensor, ...]
) -> str | None:
    if ours.dtype.kind not in ("float", "complex") or ours.shape != tuple(exact.shape):
        return None  # whether integers and shapes are right, the other tests say
    wide = np.complex128 if ours.dtype.is_complex else np.float64
    arrays = (golden.to_numpy(each) for each in (theirs, exact, *near))
    found, given, true, *beside = (np.asarray(each).astype(wide) for each in (ours.numpy(), *arrays))
    with np.errstate(all="ignore"):
        missed = np.max([np.abs(each - true) for each in (given, *beside)], axis=0)
        # Some elements PyTorch gets right by luck: what it misses others by may be missed here as well.
        finite = np.isfinite(given) & np.isfinite(true)
        missed = np.maximum(missed, np.abs(given - true)[finite].max(initial=0))
        scale = np.abs(true[np.isfinite(given)]).max(initial=0)
        allowed = MARGIN * missed + RTOL * np.abs(true) + 2e-7 * scale + 1e-37
        # Where PyTorch overflows on the way to a number, nothing is said of ours.
        lost = np.isnan(given) | (np.isfinite(true) & np.isinf(given))
        wrong = ~(lost | (found == given) | (np.abs(found - true) <= allowed))
    if not wrong.any():
        return None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    values = f"{found[place]!r}, PyTorch {given[place]!r}, exactly {true[place]!r}"
    return f"{int(wrong.sum())} of {wrong.size} differ, at {list(place)} {values}"
