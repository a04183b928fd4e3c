"""Merges neighbouring pieces of one vector where a program splits it and joins it again.

A program whose state travels as a vector, and an optimizer that updates small parameters as one, each cut and
join for themselves; put together, most of that cancels.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.flat import data_builders as moving
from tenfold.flat.data_ops import Concatenate, Reshape, Slice
from tenfold.flat.ir import Function, Value, replay


def rejoined(function: Function) -> Function:
    """The same program with fewer pieces."""
    values: dict[Value, Value] = {}
    for op in function.ops:
        if type(op) is Concatenate and op.result.rank == 1:
            values[op.result] = _joined([values.get(operand, operand) for operand in op.inputs])
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _joined(parts: Sequence[Value]) -> Value:
    pieces: list[tuple[Value, int, int]] = []
    for part in parts:
        whole, start, limit = _piece(part)
        if pieces and pieces[-1][0] is whole and pieces[-1][2] == start:
            start = pieces.pop()[1]
        pieces.append((whole, start, limit))
    return moving.concatenate(
        [
            whole if (start, limit) == (0, whole.numel) else moving.slice(whole, (start,), (limit,))
            for whole, start, limit in pieces
        ],
        0,
    )


def _piece(value: Value) -> tuple[Value, int, int]:
    """The vector that a vector is a stretch of, and from where to where."""
    source = value
    while type(source.op) is Reshape:
        source = source.op.x
    if source.rank != 1:
        return value, 0, value.numel
    cut = source.op
    if type(cut) is Slice and cut.strides == (1,):
        return cut.x, cut.start_indices[0], cut.limit_indices[0]
    return source, 0, source.numel
