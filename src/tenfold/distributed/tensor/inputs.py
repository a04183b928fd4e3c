"""What a process gives to a model on a mesh: batches, split over the devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.dtensor import DTensor, distribute_tensor
from tenfold.distributed.tensor.placements import Placement, Replicate, Shard, sharding_by
from tenfold.tensor import Tensor, sharding
from tenfold.trace import tree


def mapped(nested: Any, function: Callable[[Tensor], Any]) -> Any:
    """Nested containers with a function applied to each tensor in them."""
    tensors: list[Tensor] = []
    structure = tree.flatten(nested, lambda each: isinstance(each, Tensor), tensors)
    return tree.unflatten(structure, iter([function(tensor) for tensor in tensors]))


def as_batch(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """A plain tensor, whose first dimension counts the examples of this process's batch, as the batch of all
    processes, split over the mesh. A number is replicated."""
    if not tensor.ndim:
        return DTensor.from_local(tensor, mesh, [Replicate()] * mesh.ndim)
    if not mesh.root.own:
        return DTensor.from_local(tensor, mesh, [Shard(0)] * mesh.ndim)
    return sharding.constrain(tensor, sharding_by(mesh, [Shard(0)] * mesh.ndim, tensor.ndim))


_rows: list[
    tuple[str, ...]
] = []  # the dimensions of a mesh whose processes have different rows, innermost last


@contextlib.contextmanager
def different_rows(mesh: DeviceMesh) -> Iterator[bool]:
    """A block in which the plain tensors of processes along a mesh are different rows of a batch. It gives
    whether no other such block is around it."""
    _rows.append(tuple([axis.name for axis in mesh.axes]))
    try:
        yield len(_rows) == 1
    finally:
        _rows.pop()


def from_process(tensor: Tensor, mesh: DeviceMesh, placement: Placement) -> Tensor:
    """What a process has as its part of a tensor: along the mesh as the placement says; along the other
    dimensions, its rows."""
    whole, names = mesh.whole, [axis.name for axis in mesh.axes]
    placements: list[Placement] = []
    for name, size in mesh.root.axes:
        is_split = any(name in rows for rows in _rows)
        if name not in names and size > 1 and not is_split:
            raise UnsupportedError(
                f"a plain tensor does not say how it lies along {name!r} of the mesh ({mesh.root})",
                help="give the model tensors on the mesh, which DTensor.from_local makes",
            )
        others = Shard(0) if is_split and tensor.ndim else Replicate()
        placements.append(placement if name in names else others)
    return DTensor.from_local(tensor, whole, placements)


def split_batch(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """As `as_batch`, of a tensor that no gradient flows to: its data lies on the devices at once."""
    if not tensor.ndim or not mesh.root.own:
        return as_batch(tensor, mesh)
    return distribute_tensor(tensor, mesh, [Shard(0)] * mesh.ndim)
