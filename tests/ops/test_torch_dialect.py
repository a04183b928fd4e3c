"""Every row in the torch dialect: its module verifies; and lowered by torch-mlir instead of by our lowerings,
it computes the same numbers, as far as torch-mlir has lowerings of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.mlir import torch_dialect
from tenfold.ops.table import Row, all_rows
from tests.ops import golden
from tests.ops.through_torch_mlir import Recorded, computed, recorded
from tests.ops.torch_mlir_limits import BEYOND, NOT_RECORDED, WRONG

ROWS = sorted((row for row in all_rows() if not row.host), key=lambda row: row.qualified)
# What the dialect does not define goes through it under its name, and no further.
DEFINED = [row for row in ROWS if torch_dialect.defines(row.qualified)]
TOGETHER = 40  # rows that share a compilation
SAMPLES = 4
# It computes in another order than we do, and rounds in between: hence a slack of ten times the tolerance.
SLACK = 10


@pytest.mark.parametrize("row", ROWS, ids=[row.qualified for row in ROWS])
def test_row_is_written_in_the_dialect(row: Row) -> None:
    calls = recorded(row, 2)
    assert bool(calls) == (row.qualified not in NOT_RECORDED)
    if calls:
        module = torch_dialect.emit_all({f"f{i}": each.program for i, each in enumerate(calls)})
        text = module.text(whole=True)
        assert f"torch.aten.{row.qualified}" in text
        assert torch_dialect.read(text).text(whole=True) == text


@pytest.mark.parametrize("start", range(0, len(DEFINED), TOGETHER))
def test_rows_agree_through_torch_mlir(start: int, record_property: Any) -> None:
    rows = DEFINED[start : start + TOGETHER]
    calls = [call for row in rows for call in recorded(row, SAMPLES) if not endless(call)]
    found = computed(calls)
    through = [(call, arrays) for call, arrays in zip(calls, found) if arrays is not None]
    tn.eval(*[each for call, _ in through for each in call.results])
    differences = [(call.row.qualified, difference(call, arrays)) for call, arrays in through]
    problems = [problem for name, problem in differences if problem and name not in WRONG]
    passed = {name for name, _ in differences}
    different = {name for name, problem in differences if problem}
    for name in [row.qualified for row in rows]:
        if name in passed & BEYOND or (name in WRONG and name not in different):
            problems.append(f"{name} is lowered well by this torch-mlir: take it from the list")
        elif name not in passed | BEYOND | NOT_RECORDED:
            problems.append(f"{name} is not lowered by torch-mlir: is it written as torch-mlir reads it?")
    record_property("through torch-mlir", (len(rows), len(passed), len(calls), len(through)))
    assert problems == []


def endless(call: Recorded) -> bool:
    """Whether torch-mlir's compiler never comes back from this: an stft whose signal is padded, or a softmax
    of a tensor without dimensions."""
    return call.row.qualified == "stft.center" or ("softmax" in call.row.name and call.results[0].ndim == 0)


def difference(call: Recorded, arrays: list[np.ndarray]) -> str | None:
    """How a call's results differ from those through torch-mlir, in a line, or None."""
    if call.row.random:
        return None
    for ours, theirs in zip(call.results, arrays, strict=True):
        mine = ours.numpy()
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            types = f"{mine.dtype}{mine.shape}, not {theirs.dtype}{theirs.shape}"
            return f"{call.row.qualified} {call.call}: ours is {types}"
        rtol, atol = golden.tolerance(call.row, ours.dtype)
        wrong = ~golden.close(mine, theirs, rtol * SLACK, atol * SLACK)
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            values = f"{mine[place]!r}, not {theirs[place]!r}"
            return f"{call.row.qualified} {call.call}: {int(wrong.sum())} differ, at {list(place)} {values}"
    return None


def test_most_of_what_the_dialect_defines_is_compared():
    """The lists of exceptions cannot grow unseen."""
    compared = {row.qualified for row in DEFINED if not row.random} - BEYOND - NOT_RECORDED
    assert len(DEFINED) >= 430
    assert len(compared) >= 320
    assert BEYOND | set(WRONG) | NOT_RECORDED <= {row.qualified for row in ROWS}


def test_rows_run_on_the_host_are_not_recorded():
    host = sorted(row.qualified for row in all_rows() if row.host)
    assert len(host) <= 15
    with pytest.raises(tn.TraceError):
        tn.show(lambda x: tn.nonzero(x), tn.ones(3), stage="torch")
