"""Shardy's op: a value laid out over the devices of a mesh as it is told."""

from __future__ import annotations

from typing import Any, ClassVar

from tenfold.base.errors import ShapeError
from tenfold.base.meshes import Sharding
from tenfold.flat.ir import Op, TensorType, Value


class ShardingConstraint(Op):
    """The same value, of this sharding. Its cotangent gets the sharding `backward`, where there is one."""

    name: ClassVar[str] = "sdy.sharding_constraint"
    x: Value
    sharding: Sharding
    backward: Any

    def infer(self) -> TensorType:
        if len(self.sharding.dims) != self.x.rank:
            raise ShapeError(
                f"a sharding of {len(self.sharding.dims)} dimensions is not one of {self.x.type}"
            )
        return self.x.type


def constrained(x: Value, sharding: Sharding, backward: Sharding | None = None) -> Value:
    return ShardingConstraint(x, sharding, backward).result


def pulled_back(ct: Value, op: ShardingConstraint) -> tuple[Value]:
    return (ct if op.backward is None else constrained(ct, op.backward, op.sharding),)


def with_batch(sharding: Sharding | None) -> Sharding | None:
    return None if sharding is None else sharding.with_batch()
