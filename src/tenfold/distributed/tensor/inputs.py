"""What a process gives to a model on a mesh: batches, split over the devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.base.meshes import Mesh
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


_rows: list[tuple[Mesh, DeviceMesh]] = []  # meshes, and the rows of them that compute; the innermost last


@contextlib.contextmanager
def in_own_row(mesh: DeviceMesh) -> Iterator[None]:
    """A block in which layers that are split over the other dimensions of a mesh compute for this process's
    own batch, on the devices at its coordinates along this one."""
    _rows.append((mesh.root, mesh.row()))
    try:
        yield
    finally:
        _rows.pop()


def is_in_row(mesh: DeviceMesh) -> bool:
    return any(root == mesh.root for root, _ in _rows)


def computing(mesh: DeviceMesh) -> DeviceMesh:
    """Where layers that are split over a mesh compute: on its devices, or on those of a row."""
    for root, row in reversed(_rows):
        if root == mesh.root:
            return row.dimensions([axis.name for axis in mesh.axes])
    return mesh


def from_process(tensor: Tensor, mesh: DeviceMesh, placement: Placement) -> Tensor:
    """What a process has as its part of a tensor, placed so along the mesh."""
    whole, names = mesh.whole, [axis.name for axis in mesh.axes]
    for name, size in mesh.root.axes:
        if name not in names and size > 1:
            raise UnsupportedError(
                f"a plain tensor does not say how it lies along {name!r} of the mesh ({mesh.root})",
                help="give the model tensors on the mesh, which DTensor.from_local makes",
            )
    placements = [placement if name in names else Replicate() for name, _ in mesh.root.axes]
    return DTensor.from_local(tensor, whole, placements)


def split_batch(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """As `as_batch`, of a tensor that no gradient flows to: its data lies on the devices at once."""
    if not tensor.ndim or not mesh.root.own:
        return as_batch(tensor, mesh)
    return distribute_tensor(tensor, mesh, [Shard(0)] * mesh.ndim)
