"""Every row of the op table on every dtype and sample, by XLA and by tier 0, against PyTorch: values, dtypes,
shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.engines.numpy.programs import run_program
from tenfold.ops.schema import parse
from tenfold.ops.table import Row, all_rows
from tenfold.tensor import Tensor, leaf
from tenfold.trace.collect import collect
from tests.ops import generate, golden
from tests.ops.golden import Call

ROWS = sorted(all_rows(), key=lambda row: row.qualified)
each_row = pytest.mark.parametrize("row", ROWS, ids=[row.qualified for row in ROWS])


@each_row
def test_row_agrees_with_pytorch(row: Row, record_property: Any) -> None:
    tn.manual_seed(0)
    torch.manual_seed(0)
    assert generate.samples(row), f"aten::{row.qualified}: no sample fits its schema"
    pairs: list[tuple[Call, list[Any], list[Any]]] = []
    wrong: list[str] = []
    refused = more = 0
    for dtype in dtypes.ALL:
        for number, sample in generate.for_dtype(row, dtype):
            call = Call(row, number, sample, dtype)
            refusal: Exception | None = None
            try:
                theirs = golden.flattened(call.theirs())
            except Exception as error:
                theirs, refusal = [], error
            try:
                ours = golden.flattened(call.ours())
            except TenfoldError as error:
                if refusal is None and not golden.runs_empty(error, theirs):
                    wrong.append(f"{call}: PyTorch runs it, we raise {type(error).__name__}: {error.message}")
                refused += refusal is not None
                continue
            if refusal is None:
                pairs.append((call, ours, theirs))
            elif golden.only_lacks(refusal):
                more += 1
            else:
                wrong.append(f"{call}: we accept it, PyTorch says {str(refusal).splitlines()[0]}")
    on_tier_0 = by_tier_0([each for _, ours, _ in pairs for each in ours if isinstance(each, tn.Tensor)])
    compute(row, pairs, wrong)
    for call, ours, theirs in pairs:
        if len(ours) != len(theirs):
            wrong.append(f"{call}: gave {len(ours)} results, PyTorch {len(theirs)}")
            continue
        for place, (mine, reference) in enumerate(zip(ours, theirs, strict=True)):
            if id(mine) in on_tier_0:
                # Of random numbers, that they are XLA's is what can be said.
                expected = golden.to_torch(np.array(mine.numpy())) if row.random else reference
                compared = not row.differs
                found = golden.call_difference(call, place, on_tier_0[id(mine)], expected, compared)
                if found:
                    wrong.append(f"{call}: tier 0 {found}")
            found = golden.call_difference(call, place, mine, reference, not (row.random or row.differs))
            if found is None and row.random:
                found = out_of_range(call, mine, reference)
            if found:
                wrong.append(f"{call}: {found}")
    record_property("cases", (len(pairs), refused, more))
    assert not wrong, report(row, wrong)
    assert pairs, f"aten::{row.qualified}: PyTorch ran none of its samples"


def by_tier_0(tensors: list[tn.Tensor]) -> dict[int, Any]:
    """The tensors that are yet to be computed, by identity, with what tier 0 computes for them: its error,
    where it refuses one. Whether that is right is for XLA to say."""
    waiting = [each for each in tensors if each.current().buffer is None]
    found: dict[int, Any] = {}
    for group in [waiting, *[[each] for each in waiting]]:
        if not group or id(group[0]) in found:
            continue
        program, _ = collect([each.current() for each in group])
        try:
            arrays = run_program(program, [Tensor(each).numpy() for each in program.leaves])
        except TenfoldError as error:
            if len(group) == 1:
                found[id(group[0])] = error
            continue
        for tensor, array in zip(group, arrays, strict=True):
            found[id(tensor)] = leaf(array, tensor.device)
    return found


def compute(row: Row, pairs: list[tuple[Call, list[Any], list[Any]]], wrong: list[str]) -> None:
    """Evaluate all results as one program; if that fails, one by one, to tell which calls are at fault."""
    try:
        tn.eval(*[each for _, ours, _ in pairs for each in ours if isinstance(each, tn.Tensor)])
        return
    except TenfoldError:
        whole = list(pairs)
    for pair in whole:
        call, ours, _ = pair
        try:
            tn.eval(*[each for each in ours if isinstance(each, tn.Tensor)])
        except TenfoldError as error:
            pairs.remove(pair)
            wrong.append(f"{call}: evaluating raises {type(error).__name__}: {error.message}")


def out_of_range(call: Call, ours: tn.Tensor, theirs: torch.Tensor) -> str | None:
    """Whether random values leave the range that PyTorch draws from, as far as many draws of its show one.

    Integers from a short range show it whole; of floats only the bounds 0 and 1 are taken for bounds, and the
    median of a dozen must be among what PyTorch draws.
    """
    if not ours.numel() or ours.dtype.is_complex:
        return None
    drawn = [golden.to_numpy(golden.flattened(call.theirs())[0]).astype(np.float64) for _ in range(40)]
    low, high = min(each.min() for each in drawn), max(each.max() for each in drawn)
    found = ours.numpy().astype(np.float64)
    whole = ours.dtype.kind in ("bool", "int") and high - low < 12
    above = found.min() >= (low if whole else 0 if low >= 0 else -np.inf)
    below = found.max() <= (high if whole else 1 if high <= 1 else np.inf)
    central = found.size < 12 or low <= np.median(found) <= high
    if above and below and central:
        return None
    return f"drew from [{found.min()}, {found.max()}], PyTorch from [{low}, {high}]"


def report(row: Row, wrong: list[str]) -> str:
    shown = wrong[:20] + ([f"and {len(wrong) - 20} more"] if len(wrong) > 20 else [])
    return "\n  ".join([f"aten::{row.qualified}, {len(wrong)} wrong:", *shown])


@each_row
def test_schema_is_atens_own(row: Row) -> None:
    assert str(row.schema) == str(parse(str(golden.overload(row)._schema)))
