"""Placements: how a tensor is distributed along each dimension of a mesh, as in PyTorch, and the sharding
that results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tenfold.base.errors import ArgumentError, IndexOutOfRange, UnsupportedError
from tenfold.base.meshes import Axis, Sharding
from tenfold.distributed.device_mesh import DeviceMesh

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor is distributed along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """The devices along the mesh dimension split dimension `dim` of the tensor."""

    dim: int

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"


@dataclass(frozen=True)
class _StridedShard(Placement):
    """The devices along the mesh dimension split dimension `dim` of what later dimensions of the mesh, with
    `split_factor` devices together, have split before it: as `fully_shard` splits layers of
    `parallelize_module`."""

    dim: int
    split_factor: int = field(kw_only=True)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each device along the mesh dimension has the whole tensor."""

    def __repr__(self) -> str:
        return "Replicate()"


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is the sum of what the devices along the mesh dimension have."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


def sharding_by(mesh: DeviceMesh, placements: Sequence[Placement], rank: int) -> Sharding:
    """The sharding of a tensor of this rank; over dimensions that a part of a mesh leaves out, replicated."""
    if len(placements) != mesh.ndim:
        raise ArgumentError(
            f"a mesh of {mesh.ndim} dimensions takes as many placements, not {len(placements)}"
        )
    dims: list[tuple[Axis, ...]] = [()] * rank
    for axis, placement in reversed([*zip(mesh.axes, placements, strict=True)]):
        if isinstance(placement, Partial):
            raise UnsupportedError(
                "a tensor is not left as partial sums: XLA adds them up where they arise",
                help="use Replicate() or Shard(dim); DTensor.from_local takes Partial()",
            )
        if isinstance(placement, (Shard, _StridedShard)):
            if not isinstance(placement.dim, int):
                raise ArgumentError(f"{placement}: a dimension is given by its number")
            if not -rank <= placement.dim < rank:
                raise IndexOutOfRange(f"{placement} of a tensor of {rank} dimensions")
            dim = placement.dim % rank
            outer = _outermost(dims[dim], getattr(placement, "split_factor", 1), placement)
            dims[dim] = (*dims[dim][:outer], axis, *dims[dim][outer:])
        elif not isinstance(placement, Replicate):
            raise ArgumentError(f"{placement!r} is no placement", help="use Shard(dim) or Replicate()")
    return Sharding(mesh.root, dims)


def _outermost(axes: Sequence[Axis], split_factor: int, placement: Placement) -> int:
    """How many of the axes, from the outermost on, split a dimension into so many parts."""
    for count in range(len(axes) + 1):
        if math.prod([axis.size for axis in axes[:count]]) == split_factor:
            return count
    raise ArgumentError(f"{placement}: the later dimensions of the mesh do not make {split_factor} parts")


def partly(mesh: DeviceMesh, placements: Sequence[Placement], rank: int) -> Sharding:
    """What these dimensions of a mesh do; what the others do is left to the partitioner."""
    placed = sharding_by(mesh, placements, rank)
    if len(mesh.axes) == len(mesh.root.axes):
        return placed
    split = {axis.name for axes in placed.dims for axis in axes or ()}
    return Sharding(
        mesh.root, placed.dims, tuple([axis.name for axis in mesh.axes if axis.name not in split])
    )


def placements_of(sharding: Sharding, mesh: DeviceMesh) -> tuple[Placement, ...]:
    """What each dimension of the mesh does, by a sharding."""
    order = [name for name, _ in sharding.mesh.axes]
    found: list[Placement] = []
    for axis in mesh.axes:
        placement: Placement = Replicate()
        for dim, axes in enumerate(sharding.dims):
            names = [each.name for each in axes or ()]
            if axis.name in names:
                before = (axes or ())[: names.index(axis.name)]
                later = [each.size for each in before if order.index(each.name) > order.index(axis.name)]
                parts = math.prod(later)
                placement = Shard(dim) if parts == 1 else _StridedShard(dim, split_factor=parts)
        found.append(placement)
    return tuple(found)
