"""Products of half-precision matrices, written so that GPUs run them best.

A lowering asks for such a product in float32, adds to it, and rounds the sum. GPUs sum in float32 inside the
product anyway, and what is written out in float32 only to be rounded costs more than the product itself:
here the rounding is moved into the product, and what is added to it is added in half precision.
"""

from __future__ import annotations

import math

from tenfold.base import dtypes
from tenfold.flat.data_ops import BroadcastInDim, Reshape, Transpose
from tenfold.flat.elementwise import Add, Convert
from tenfold.flat.ir import Function, Op, Value, replay
from tenfold.flat.structured import DotGeneral

HALVES = (dtypes.float16, dtypes.bfloat16)


def narrowed(function: Function) -> Function:
    """The same program with products rounded where they are made, if all that happens to one before it is
    rounded is a change of shape or the addition of something that was half precision before."""
    uses: dict[Value, int] = {}
    for value in (*function.results, *[operand for op in function.ops for operand in op.operands]):
        uses[value] = uses.get(value, 0) + 1
    chosen: set[Op] = set()
    for op in function.ops:
        if isinstance(op, Convert) and op.dtype in HALVES and op.x.dtype is dtypes.float32:
            chosen.update(_way(op, uses))
    if not chosen:
        return function
    values: dict[Value, Value] = {}
    for op in function.ops:
        if op in chosen:
            values[op.result] = _rounded(op, values)
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _way(end: Convert, uses: dict[Value, int]) -> list[Op]:
    """The ops from a product to where it is rounded; none if there is another use of what lies between."""
    way: list[Op] = [end]
    value = end.x
    while uses[value] == 1 and value.op is not None:
        op = value.op
        way.append(op)
        if isinstance(op, DotGeneral):
            return way if op.x.dtype is end.dtype and not is_of_vectors(op) else []
        passes = isinstance(op, Add) and _narrow(op.y, end.dtype) is not None
        if not (passes or isinstance(op, (Reshape, Transpose))):
            return []
        value = op.operands[0]
    return []


def is_of_vectors(op: DotGeneral) -> bool:
    """Whether one factor is a vector, or several: XLA multiplies and adds up such products itself, and would
    round each of what it adds up."""
    numbers = op.dot_dimension_numbers
    along = math.prod([op.x.shape[i] for i in numbers.lhs_batching_dimensions])
    over = math.prod([op.x.shape[i] for i in numbers.lhs_contracting_dimensions])
    return along * over in (op.x.numel, op.y.numel)


def _narrow(value: Value, dtype: dtypes.DType) -> Value | None:
    """What a float32 value was in half precision before it was widened, and maybe broadcast."""
    op = value.op
    if isinstance(op, Convert) and op.x.dtype is dtype:
        return op.x
    if isinstance(op, BroadcastInDim):
        narrow = _narrow(op.x, dtype)
        return None if narrow is None else BroadcastInDim(narrow, op.shape, op.broadcast_dimensions).result
    return None


def _rounded(op: Op, values: dict[Value, Value]) -> Value:
    def now(value: Value) -> Value:
        return values.get(value, value)

    if isinstance(op, DotGeneral):
        return DotGeneral(now(op.x), now(op.y), op.dot_dimension_numbers, op.x.dtype).result
    if isinstance(op, Convert):
        return now(op.x)
    if isinstance(op, Add):
        x = now(op.x)
        other = _narrow(op.y, x.dtype)
        assert other is not None
        return Add(x, now(other)).result
    if isinstance(op, Reshape):
        return Reshape(now(op.x), op.shape).result
    assert isinstance(op, Transpose)
    return Transpose(now(op.x), op.permutation).result
