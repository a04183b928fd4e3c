"""Where plain tensors become tensors on a mesh, and these plain ones again. Gradients pass both ways."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.autograd.function import Function
from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.base.meshes import Mesh, Sharding
from tenfold.base.source import capture
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.group import ProcessGroup
from tenfold.distributed.tensor.placements import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
    sharding_by,
)
from tenfold.flat.ir import TensorType
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.tensor.dispatch import aten
from tenfold.trace import graph

Shape = Sequence[int] | None


def from_parts(local: Tensor, mesh: DeviceMesh, chosen: Sequence[Placement], shape: Shape = None) -> Tensor:
    """The tensor of which each process has `local`, placed so. Without a shape, all have parts of one."""
    kinds = {each.reduce_op for each in chosen if isinstance(each, Partial)}
    if not kinds <= {"sum", "avg"} or len(kinds) > 1:
        raise ArgumentError(f"partial results are added up, not {sorted(kinds)}", help='use "sum" or "avg"')
    return _FromParts.apply(local, mesh, tuple(chosen), shape)


def part_here(tensor: Tensor, placed: Sharding, gradient: Sequence[Placement] | None, mesh: Any) -> Tensor:
    """What this process has of a tensor that is placed so. The gradient of this part is a part of the
    tensor's: placed as the tensor, unless `gradient` says otherwise."""
    return _PartHere.apply(tensor, placed, gradient, mesh)


class _FromParts(Function):
    @staticmethod
    def forward(
        ctx: Any, local: Tensor, mesh: DeviceMesh, chosen: tuple[Placement, ...], shape: Shape
    ) -> Tensor:
        ctx.mesh, ctx.chosen = mesh, chosen
        array = local._host()
        if any(isinstance(each, Partial) for each in chosen):
            return _sum_of_parts(array, mesh, chosen, shape)
        return assembled(array, sharding_by(mesh, chosen, array.ndim), shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        whole = [Replicate() if isinstance(each, Partial) else each for each in ctx.chosen]
        placed = sharding_by(ctx.mesh, whole, gradient.ndim)
        part = part_here(sharding.constrain(gradient, placed), placed, None, None)
        return part * _weight(ctx.mesh, ctx.chosen), None, None, None


class _PartHere(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, placed: Sharding, gradient: Any, mesh: Any) -> Tensor:
        ctx.placed, ctx.gradient, ctx.mesh, ctx.shape = placed, gradient, mesh, tuple(tensor.shape)
        return leaf(_own_part(tensor, placed), Device(placed.mesh.platform), tensor.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        if ctx.gradient is None:
            return _FromSharding.apply(gradient, ctx.placed, ctx.shape), None, None, None
        # The devices of one process have one gradient together, which counts once.
        weight = 1 / _own_count(ctx.mesh, ctx.gradient)
        whole = from_parts(gradient * weight, ctx.mesh, ctx.gradient, ctx.shape)
        return sharding.constrain(whole, ctx.placed), None, None, None


class _FromSharding(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, placed: Sharding, shape: tuple[int, ...]) -> Tensor:
        ctx.placed = placed
        return assembled(local._host(), placed, shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return part_here(sharding.constrain(gradient, ctx.placed), ctx.placed, None, None), None, None


def assembled(array: np.ndarray, placed: Sharding, shape: Shape = None) -> Tensor:
    """The tensor of which this process has `array`. Its shape is given, or all processes have arrays of one
    shape."""
    from tenfold.engines import sharded

    whole = _whole_shape(array, placed) if shape is None else tuple(shape)
    indices, low, high = _extent_here(placed, whole)
    own = tuple([b - a for a, b in zip(low, high, strict=True)])
    if array.shape != own:
        raise ShapeError(
            f"this process's part of {list(whole)} is {list(own)}, and {list(array.shape)} is given"
        )
    pieces = [
        array[tuple([slice(s.start - a, s.stop - a) for s, a in zip(index, low, strict=True)])]
        for index in indices
    ]
    made = TensorType(dtypes.from_numpy(array.dtype), whole)
    return sharding.leaf_of(sharded.assembled(pieces, whole, placed), made, placed)


def _whole_shape(array: np.ndarray, placed: Sharding) -> tuple[int, ...]:
    """How large a tensor is of which all processes have parts of one shape."""
    from tenfold.engines import sharded

    positions, parts, whole = sharded.local_positions(placed.mesh), placed.parts, []
    starts = [[each.start for each in placed.index(parts, position)] for position in positions]
    for dim, extent in enumerate(array.shape):
        own = len({start[dim] for start in starts})  # the parts of this process itself
        if own < parts[dim] and extent % own:
            raise ShapeError(
                f"dimension {dim} of size {extent} cannot be split evenly over {own} devices",
                help="give the shape of the whole tensor",
            )
        whole.append(extent if own == parts[dim] else extent // own * parts[dim])
    return tuple(whole)


def _extent_here(placed: Sharding, shape: Sequence[int]) -> tuple[Any, list[int], list[int]]:
    """Which parts of a tensor this process's devices have, and where these together begin and end."""
    from tenfold.engines import sharded

    indices = [placed.index(shape, position) for position in sharded.local_positions(placed.mesh)]
    low = [min(each[dim].start for each in indices) for dim in range(len(shape))]
    high = [max(each[dim].stop for each in indices) for dim in range(len(shape))]
    return indices, low, high


def stacked(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """What all processes have, one after the other in a new first dimension, on a mesh of one device of each.
    This process's part is in the tensor's own memory."""
    from tenfold.engines import sharded

    own = tensor
    if own.device.mesh is not None or own.device.index:
        own = leaf(own._host(), Device(mesh.device_type), own.dtype)
    if not own.ndim:
        own = leaf(own._host().reshape(1), own.device, own.dtype)
    whole = (own.shape[0] * mesh.size(), *own.shape[1:])
    placed = sharding_by(mesh, [Shard(0)] * mesh.ndim, own.ndim)
    joined = sharding.leaf_of(
        sharded.around(own._buffer(), whole, placed), TensorType(own.dtype, whole), placed
    )
    return joined.reshape((mesh.size(), *tensor.shape))


def data_at(tensor: Tensor, root: Mesh, position: int) -> Tensor:
    """What the process has as this tensor whose device is at a position of a mesh. All processes of the mesh
    call this together."""
    from tenfold.engines import sharded

    ranks = process_ranks(root)
    source = ranks.index(sharded.devices_of(root)[position].process_index)
    mesh = ProcessGroup(ranks, "processes of a mesh").mesh(root.platform)
    with no_grad():
        chosen = stacked(tensor.detach(), mesh)[source]
        return own_part(sharding.constrain(chosen, sharding_by(mesh, [Replicate()], tensor.ndim)))


def process_ranks(root: Mesh) -> list[int]:
    """The processes whose devices a mesh has."""
    from tenfold.engines import sharded

    return sorted({device.process_index for device in sharded.devices_of(root)})


def own_part(tensor: Tensor) -> Tensor:
    """This process's part of a tensor on a mesh of one device of each. It takes over the memory: nobody else
    may have the tensor."""
    from tenfold.engines import sharded

    buffer = sharded.own_part(tensor._buffer())
    kind = TensorType(tensor.dtype, tuple(buffer.aval.shape))
    value = graph.Value(kind, Device(tensor.device.type).resolved, buffer=buffer)
    value.source = capture()
    return Tensor(value)


def _own_part(tensor: Tensor, placed: Sharding) -> np.ndarray:
    """What this process's devices have of a tensor, together."""
    from tenfold.engines import sharded

    indices, low, high = _extent_here(placed, tensor.shape)
    array = np.empty([b - a for a, b in zip(low, high, strict=True)], tensor.dtype.numpy)
    tensor._computed()
    for index, part in zip(indices, sharded.parts_of(tensor._buffer()), strict=True):
        array[tuple([slice(s.start - a, s.stop - a) for s, a in zip(index, low, strict=True)])] = part
    return array


# Partial placements: each device has a summand


def _sum_of_parts(array: np.ndarray, mesh: DeviceMesh, chosen: Sequence[Placement], shape: Shape) -> Tensor:
    """The sum over the devices of what each has, one along each partial dimension of the mesh."""
    placed = _stacked(mesh, chosen, array.ndim)
    parts = np.broadcast_to(array, (_own_count(mesh, chosen), *array.shape))
    whole = None if shape is None else (_count(mesh, chosen), *shape)
    total = aten("sum")(assembled(parts, placed, whole), (0,))
    return total / _count(mesh, chosen) if _averages(chosen) else total


def _stacked(mesh: DeviceMesh, chosen: Sequence[Placement], rank: int) -> Sharding:
    """How the summands are placed, with a first dimension that counts them."""
    shifted = [
        dataclasses.replace(each, dim=each.dim + 1)
        if isinstance(each, (Shard, _StridedShard)) and each.dim >= 0
        else each
        for each in chosen
    ]
    return sharding_by(mesh, [Shard(0) if isinstance(each, Partial) else each for each in shifted], rank + 1)


def _count(mesh: DeviceMesh, chosen: Sequence[Placement]) -> int:
    """How many summands there are."""
    pairs = zip(mesh.axes, chosen, strict=True)
    return math.prod([axis.size for axis, each in pairs if isinstance(each, Partial)])


def _own_count(mesh: DeviceMesh, chosen: Sequence[Placement]) -> int:
    """How many of them this process has: it gives the same for each of its devices."""
    from tenfold.engines import sharded

    if not any(isinstance(each, Partial) for each in chosen):
        return 1
    placed = _stacked(mesh, [each if isinstance(each, Partial) else Replicate() for each in chosen], 0)
    positions = sharded.local_positions(mesh.root)
    return len({placed.index(placed.parts, position)[0].start for position in positions})


def _averages(chosen: Sequence[Placement]) -> bool:
    return any(isinstance(each, Partial) and each.reduce_op == "avg" for each in chosen)


def _weight(mesh: DeviceMesh, chosen: Sequence[Placement]) -> float:
    """How much of what this process gives is in the whole."""
    return _own_count(mesh, chosen) / (_count(mesh, chosen) if _averages(chosen) else 1)
