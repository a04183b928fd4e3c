"""Rows on StableHLO's reference interpreter, which shares no code with XLA: a second opinion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.mlir import stablehlo
from tenfold.ops.table import Row, all_rows
from tenfold.tensor import Tensor, leaf
from tenfold.trace.collect import collect
from tenfold.trace.lower import lower
from tests.ops import generate, golden
from tests.ops.generate import Edges
from tests.ops.golden import Call
from tests.ops.test_rows import report

# Ops that the interpreter does not know.
# It rounds after each op where a compiler keeps more: hence a slack of ten times the tolerance.
UNKNOWN = {
    "stablehlo.cholesky",
    "stablehlo.custom_call",
    "stablehlo.fft",
    "stablehlo.rng_bit_generator",
    "stablehlo.triangular_solve",
}
ROWS = sorted((row for row in all_rows() if not (row.random or row.host)), key=lambda row: row.qualified)


@pytest.mark.parametrize("row", ROWS, ids=[row.qualified for row in ROWS])
def test_row_agrees_on_the_reference_interpreter(row: Row, record_property: Any) -> None:
    wrong: list[str] = []
    ran = unable = 0
    for dtype in (dtypes.float32, dtypes.int32):
        for number, sample in generate.for_dtype(row, dtype):
            if any(isinstance(each, Edges) for each in sample.args):
                continue  # at the edges it is the engine's arithmetic that is tested, not the lowering
            call = Call(row, number, sample, dtype)
            try:
                theirs, ours = golden.flattened(call.theirs()), golden.flattened(call.ours())
            except (TenfoldError, RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
                continue  # what is refused is the business of the comparison with PyTorch alone
            values = [each.current() for each in ours if isinstance(each, Tensor)]
            if not values:
                continue
            program, _ = collect(values)
            function = lower(program)
            if any(each.type.dtype.is_complex for each in values) or any(map(beyond_it, ops(function))):
                unable += 1
                continue
            arrays = [Tensor(each).numpy() for each in program.leaves]
            found = stablehlo.interpret(stablehlo.emit(function), arrays)[: len(values)]
            ran += 1
            device = values[0].device
            for value, array, reference in zip(values, found, theirs, strict=True):
                mine = leaf(array, device, value.type.dtype)
                difference = golden.difference(row, mine, reference, values=not row.differs, slack=10)
                if difference:
                    wrong.append(f"{call}: {difference}")
    record_property("interpreted", (ran, unable))
    assert not wrong, report(row, wrong)


def beyond_it(op: flat.Op) -> bool:
    """Whether the interpreter does not know an op, or ends the process on it."""
    empty = any(not operand.numel for operand in op.operands)
    return op.name in UNKNOWN or (op.name in ("stablehlo.dot_general", "stablehlo.convolution") and empty)


def ops(function: flat.Function) -> Iterator[flat.Op]:
    """The ops of a function and of the functions inside them."""
    for op in function.ops:
        yield op
        for value in op.attributes.values():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, flat.Function):
                    yield from ops(each)
