"""Sums over the devices of a mesh in the dtype that is asked for.

The partitioner adds up products where they are made, in the dtype that they have there. A cotangent that is
widened before it is laid out over the devices is to be added up wide: here the products that it is made of
are not rounded first.
"""

from __future__ import annotations

from tenfold.base.dtypes import DType
from tenfold.flat.build import convert
from tenfold.flat.data_ops import Reshape, Transpose
from tenfold.flat.elementwise import Add, Convert
from tenfold.flat.ir import Function, Value, replay
from tenfold.flat.sharding import ShardingConstraint
from tenfold.flat.structured import DotGeneral


def summed_wide(function: Function) -> Function:
    """The same program, in which what is widened and then laid out over devices was never rounded."""
    widened = {op.x.op for op in function.ops if isinstance(op, ShardingConstraint)}
    values: dict[Value, Value] = {}
    for op in function.ops:
        wide = _wide(values.get(op.x, op.x), op.dtype) if isinstance(op, Convert) and op in widened else None
        if wide is not None:
            values[op.result] = wide
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    if not values:
        return function
    return Function(function.params, [values.get(each, each) for each in function.results], function.name)


def _wide(value: Value, dtype: DType) -> Value | None:
    """Numbers of floating point in a wider dtype, if they come from one or from products."""
    op = value.op
    if (
        op is None
        or value.dtype.kind != "float"
        or dtype.kind != "float"
        or dtype.itemsize <= value.dtype.itemsize
    ):
        return None
    if isinstance(op, Convert):
        return op.x if op.x.dtype is dtype else None
    if isinstance(op, DotGeneral):
        return DotGeneral(op.x, op.y, op.dot_dimension_numbers, dtype).result
    if isinstance(op, Add):
        terms = [_wide(each, dtype) for each in (op.x, op.y)]
        if terms == [None, None]:
            return None
        return Add(
            *[convert(each, dtype) if wide is None else wide for wide, each in zip(terms, (op.x, op.y))]
        ).result
    if isinstance(op, Reshape | Transpose):
        inner = _wide(op.x, dtype)
        if inner is None:
            return None
        if isinstance(op, Reshape):
            return Reshape(inner, op.shape).result
        return Transpose(inner, op.permutation).result
    return None
