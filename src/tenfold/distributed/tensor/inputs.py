"""What a process gives to a model on a mesh: batches, split over the devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.dtensor import DTensor, distribute_tensor
from tenfold.distributed.tensor.placements import Replicate, Shard, sharding_by
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


def split_batch(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """As `as_batch`, of a tensor that no gradient flows to: its data lies on the devices at once."""
    if not tensor.ndim or not mesh.root.own:
        return as_batch(tensor, mesh)
    return distribute_tensor(tensor, mesh, [Shard(0)] * mesh.ndim)
