"""Gradients that are added up over the devices of a mesh in the dtype that a policy asks for.

XLA's partitioner adds up partial results at the op that makes them, in the dtype of that op.
`sharding.gathered` converts a cotangent to a wider dtype and marks the constraint that reduces it. Here the
products of such a cotangent are computed in the wider dtype, so that the sum is wide too. All other values
keep the rounding that the program asks for.
"""

from __future__ import annotations

from tenfold.base.dtypes import DType
from tenfold.flat.build import convert
from tenfold.flat.data_ops import Reshape, Transpose
from tenfold.flat.elementwise import Add, Convert
from tenfold.flat.ir import Function, Op, Value, replay
from tenfold.flat.sharding import ShardingConstraint
from tenfold.flat.structured import DotGeneral


def summed_wide(function: Function) -> Function:
    """The same program, in which gradients are added up over devices before they are rounded."""
    values: dict[Value, Value] = {}
    for op in function.ops:
        wide = _reduced(op, values)
        if wide is not None:
            values[op.result] = wide
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    if not values:
        return function
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _reduced(op: Op, values: dict[Value, Value]) -> Value | None:
    """A marked constraint on its cotangent as that was before rounding; None where nothing is gained."""
    if not isinstance(op, ShardingConstraint) or not op.reduces:
        return None
    converted = values.get(op.x, op.x).op
    wide = _wide(converted.x, converted.dtype) if isinstance(converted, Convert) else None
    return None if wide is None else op.replace({op.x: wide}).result


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
        terms = [_wide(factor, dtype) for factor in (op.x, op.y)]
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
