"""Shardy's op: a value laid out over the devices of a mesh as it is told; and parameters that are gathered
and whose cotangents are reduced in a dtype of their own."""

from __future__ import annotations

from typing import Any, ClassVar

from tenfold.base.dtypes import DType
from tenfold.base.errors import ShapeError
from tenfold.base.meshes import Sharding
from tenfold.flat.build import convert
from tenfold.flat.composite import differentiated
from tenfold.flat.ir import Function, Op, TensorType, Value, replay


class ShardingConstraint(Op):
    """The same value, of this sharding. Its cotangent gets the sharding `backward`, where there is one.
    `reduces` marks a gradient that the devices add up in the dtype of `x`, not in the dtype that `x` was
    converted from."""

    name: ClassVar[str] = "sdy.sharding_constraint"
    x: Value
    sharding: Sharding
    backward: Any
    reduces: bool

    def infer(self) -> TensorType:
        if len(self.sharding.dims) != self.x.rank:
            raise ShapeError(
                f"a sharding of {len(self.sharding.dims)} dimensions is not one of {self.x.type}"
            )
        return self.x.type


def constrained(x: Value, sharding: Sharding, backward: Sharding | None = None) -> Value:
    return ShardingConstraint(x, sharding, backward, False).result


def pulled_back(ct: Value, op: ShardingConstraint) -> tuple[Value]:
    return (ct if op.backward is None else constrained(ct, op.backward, op.sharding),)


def with_batch(sharding: Sharding | None) -> Sharding | None:
    return None if sharding is None else sharding.with_batch()


def gathered(x: Value, whole: Sharding, kept: Sharding, dtype: DType, reduce_dtype: DType) -> Value:
    """A parameter of sharding `kept` in another dtype and sharding, for a computation. Its cotangent is added
    up over the devices in `reduce_dtype`, and laid out as the parameter."""

    def reduced(ct: Value, result: Value, x: Value) -> tuple[Value]:
        summed = ShardingConstraint(convert(ct, reduce_dtype), kept, whole, True).result
        return (convert(summed, x.dtype),)

    @differentiated(reduced)
    def gather(x: Value) -> Value:
        return constrained(convert(x, dtype), whole, kept)

    return gather(x)


def unconstrained(function: Function) -> Function:
    """The same program for one device, where a sharding says nothing: XLA fuses across its values."""
    values: dict[Value, Value] = {}
    for op in function.ops:
        if isinstance(op, ShardingConstraint):
            values[op.result] = values.get(op.x, op.x)
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    if not values:
        return function
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )
