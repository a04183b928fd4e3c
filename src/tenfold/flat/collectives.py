"""Programs written for one device of a mesh, and what the devices exchange in them.

`ManualComputation` is Shardy's op: its body sees the part of each input that one device has. Inside, devices
exchange data by StableHLO's collectives. Their `groups` say which devices work together, by their positions
in the mesh.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.base.meshes import Sharding
from tenfold.flat.build import convert, eq, where
from tenfold.flat.ir import Function, Op, TensorType, Value

Groups = tuple[tuple[int, ...], ...]


def groups_along(axes: Sequence[tuple[str, int]], names: Sequence[str]) -> Groups:
    """The groups of devices that differ along the named axes alone, of a mesh with these axes."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for position in range(math.prod([size for _, size in axes])):
        rest, place = [], position
        for name, size in reversed(axes):
            if name not in names:
                rest.append(place % size)
            place //= size
        groups.setdefault(tuple(rest), []).append(position)
    return tuple([tuple(group) for group in groups.values()])


class Collective(Op):
    """An op by which the devices of each group exchange data."""

    @property
    def size(self) -> int:
        """How many devices are in a group."""
        return len(self.__dict__["groups"][0])


class AllReduce(Collective):
    """On each device, what a monoid makes of the group's values, element by element."""

    name: ClassVar[str] = "stablehlo.all_reduce"
    x: Value
    kind: str
    groups: Groups

    def infer(self) -> TensorType:
        return self.x.type


class AllGather(Collective):
    """On each device, the group's values, one after the other along a dimension."""

    name: ClassVar[str] = "stablehlo.all_gather"
    x: Value
    all_gather_dim: int
    groups: Groups

    def infer(self) -> TensorType:
        return _scaled(self.x, self.all_gather_dim, self.size, 1)


class ReduceScatter(Collective):
    """Of the sum of the group's values, to each device its part along a dimension."""

    name: ClassVar[str] = "stablehlo.reduce_scatter"
    x: Value
    scatter_dimension: int
    groups: Groups

    def infer(self) -> TensorType:
        return _scaled(self.x, self.scatter_dimension, 1, self.size)


class AllToAll(Collective):
    """Each value is split along a dimension; device i gets part i of each, joined along another."""

    name: ClassVar[str] = "stablehlo.all_to_all"
    x: Value
    split_dimension: int
    concat_dimension: int
    groups: Groups

    def infer(self) -> TensorType:
        split = _scaled(self.x, self.split_dimension, 1, self.size)
        return _scaled(Value(split), self.concat_dimension, self.size, 1)


class CollectivePermute(Op):
    """To each target the value of its source; zeros where there is none. There is at least one pair."""

    name: ClassVar[str] = "stablehlo.collective_permute"
    x: Value
    source_target_pairs: tuple[tuple[int, int], ...]

    def infer(self) -> TensorType:
        if not self.source_target_pairs:
            raise ArgumentError("collective_permute sends nothing: it has no pair of source and target")
        for ends in zip(*self.source_target_pairs, strict=True):
            if len(set(ends)) != len(ends):
                raise ArgumentError("a device is the source, or the target, of one value at most")
        return self.x.type


class PartitionId(Op):
    """The device's position in the mesh."""

    name: ClassVar[str] = "stablehlo.partition_id"

    def infer(self) -> TensorType:
        return TensorType(dtypes.uint32, ())


class ManualComputation(Op):
    """`body` on each device, on its parts of the inputs; its results are parts of the whole ones."""

    name: ClassVar[str] = "sdy.manual_computation"
    inputs: tuple[Value, ...]
    body: Function
    in_shardings: tuple[Sharding, ...]
    out_shardings: tuple[Sharding, ...]

    def infer(self) -> tuple[TensorType, ...]:
        pairs = zip(self.inputs, self.in_shardings, strict=True)
        parts = [TensorType(x.dtype, placed.shard_shape(x.shape)) for x, placed in pairs]
        self.body.expect("manual_computation: its body", parts, [result.type for result in self.body.results])
        return tuple(
            [
                TensorType(
                    result.dtype, tuple([e * n for e, n in zip(result.shape, placed.parts, strict=True)])
                )
                for result, placed in zip(self.body.results, self.out_shardings, strict=True)
            ]
        )


def _scaled(x: Value, dim: int, times: int, parts: int) -> TensorType:
    if not 0 <= dim < x.rank:
        raise ShapeError(f"{x.type} has no dimension {dim}")
    if x.shape[dim] % parts:
        raise ShapeError(f"dimension {dim} of {x.type} cannot be split over {parts} devices")
    shape = list(x.shape)
    shape[dim] = shape[dim] * times // parts
    return TensorType(x.dtype, tuple(shape))


def all_reduce(x: Value, kind: str, groups: Groups) -> Value:
    """By a monoid: add, max, min, mul, and, or, xor."""
    return AllReduce(x, kind, groups).result


def manual_axes(op: ManualComputation) -> list[str]:
    """The axes along which the body is written for one device: all, or those that the shardings name. What
    the body does along the others is left to the partitioner."""
    placed = (*op.in_shardings, *op.out_shardings)[0]
    split = {axis.name for axes in placed.dims for axis in axes or ()}
    names = [name for name, _ in placed.mesh.axes]
    return (
        names if placed.whole is None else [name for name in names if name in split or name in placed.whole]
    )


def shared(placed: Sharding) -> Groups:
    """The groups of devices that have the same part of what is sharded so."""
    split = {axis.name for axes in placed.dims for axis in axes or ()}
    names = [name for name, _ in placed.mesh.axes] if placed.whole is None else placed.whole
    return groups_along(placed.mesh.axes, [name for name in names if name not in split])


# Derivatives of an all-reduce: of a sum, or of what is chosen


def chosen(op: AllReduce) -> Value:
    """The share that each element has in a maximum or minimum: those that are equal to it have equal ones."""
    if op.kind not in ("max", "min"):
        raise ArgumentError(f"an all-reduce by {op.kind!r} has no derivative")
    here = convert(eq(op.x, op.result), op.x.dtype)
    return here / all_reduce(here, "add", op.groups)


def reduce_pulled_back(ct: Value, op: AllReduce) -> tuple[Value]:
    total = all_reduce(ct, "add", op.groups)
    return (total if op.kind == "add" else total * chosen(op),)


def reduce_pushed(ts: Sequence[Value | None], op: AllReduce) -> list[Value]:
    (t,) = ts
    assert t is not None
    share = t if op.kind == "add" else where(eq(op.x, op.result), t * chosen(op), 0)
    return [all_reduce(share, "add", op.groups)]


def turned_back(op: CollectivePermute) -> tuple[tuple[int, int], ...]:
    return tuple([(target, source) for source, target in op.source_target_pairs])
