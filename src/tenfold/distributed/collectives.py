"""Collectives between processes on plain tensors, by PyTorch's names.

Each is a small program over a mesh of one device of each process: what a process gives is its part of a
tensor on that mesh, and XLA moves or adds up what has to be.
"""

from __future__ import annotations

import enum
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.group import ProcessGroup, get_rank, world_of
from tenfold.distributed.tensor.edges import own_part, stacked
from tenfold.distributed.tensor.placements import Placement, Replicate, Shard, sharding_by
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.tensor.dispatch import aten


class ReduceOp(enum.Enum):
    """How what the processes have becomes one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's type of the members


class Work:
    """A collective that is done."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True


def _work(async_op: bool) -> Work | None:
    return Work() if async_op else None


def _mesh(group: ProcessGroup, tensor: Tensor) -> DeviceMesh:
    if group.rank() < 0:
        raise ArgumentError(f"rank {get_rank()} is not in the group {group.ranks}")
    return group.mesh(tensor.device.type)


def _local(result: Tensor, mesh: DeviceMesh, placement: Placement, like: Tensor) -> Tensor:
    """This process's part of a result that is placed so, as a plain tensor."""
    placed = sharding.constrain(result, sharding_by(mesh, [placement], result.ndim))
    del result  # what nobody holds is not a result of the program
    local = own_part(placed)
    return local if local.device is like.device else local.to(like.device)


def _reduced(stacked: Tensor, op: ReduceOp, dtype: Any) -> Tensor:
    """The stack with its first dimension folded up."""
    if op in (ReduceOp.SUM, ReduceOp.AVG):
        total = aten("sum")(stacked, (0,), dtype=dtype)
        return total if op is ReduceOp.SUM else (total / stacked.shape[0]).to(dtype)
    if op is ReduceOp.PRODUCT:
        return aten("prod")(stacked, 0, dtype=dtype)
    if op in (ReduceOp.MIN, ReduceOp.MAX):
        return aten("amin" if op is ReduceOp.MIN else "amax")(stacked, (0,))
    fold: Callable[[Tensor, Tensor], Tensor] = {
        ReduceOp.BAND: lambda x, y: x & y,
        ReduceOp.BOR: lambda x, y: x | y,
        ReduceOp.BXOR: lambda x, y: x ^ y,
    }[op]
    found = stacked[0]
    for i in range(1, stacked.shape[0]):
        found = fold(found, stacked[i])
    return found


def _write(target: Tensor, value: Tensor) -> None:
    if tuple(target.shape) != tuple(value.shape):
        raise ShapeError(f"a result of {tuple(value.shape)} does not fit {tuple(target.shape)}")
    with no_grad():
        if value.dtype is target.dtype and value.device is target.device:
            target.assign(value.current())  # values do not change, so that nothing is copied
        else:
            target.copy_(value)


@located
def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Let every process's tensor be the sum of them all, or what `op` makes of them."""
    mesh = _mesh(world_of(group), tensor)
    _write(tensor, _local(_reduced(stacked(tensor, mesh), op, tensor.dtype), mesh, Replicate(), tensor))
    return _work(async_op)


@located
def reduce(
    tensor: Tensor,
    dst: int,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """As all_reduce, for process `dst` alone."""
    mesh = _mesh(world_of(group), tensor)
    total = _local(_reduced(stacked(tensor, mesh), op, tensor.dtype), mesh, Replicate(), tensor)
    if get_rank() == dst:
        _write(tensor, total)
    return _work(async_op)


@located
def broadcast(
    tensor: Tensor, src: int = 0, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Let every process's tensor be that of process `src`."""
    world = world_of(group)
    mesh = _mesh(world, tensor)
    if src not in world.ranks:
        raise ArgumentError(f"rank {src} is not in the group {world.ranks}")
    chosen = stacked(tensor, mesh)[world.ranks.index(src)]
    _write(tensor, _local(chosen, mesh, Replicate(), tensor))
    return _work(async_op)


def _gathered(tensor: Tensor, group: ProcessGroup | None) -> Tensor:
    mesh = _mesh(world_of(group), tensor)
    return _local(stacked(tensor, mesh), mesh, Replicate(), tensor)


@located
def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write every process's tensor into the list, in order."""
    everything = _gathered(tensor, group)
    for target, i in zip(tensor_list, range(everything.shape[0]), strict=True):
        _write(target, everything[i])
    return _work(async_op)


@located
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write every process's tensor into one, one after the other along the first dimension, or stacked."""
    everything = _gathered(input_tensor, group)
    _write(output_tensor, everything.reshape(output_tensor.shape))
    return _work(async_op)


@located
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """As all_gather, for process `dst` alone."""
    everything = _gathered(tensor, group)
    if get_rank() == dst:
        for target, i in zip(gather_list or [], range(everything.shape[0]), strict=True):
            _write(target, everything[i])
    return _work(async_op)


@located
def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Add up what all processes have, and give each its part along the first dimension."""
    mesh = _mesh(world_of(group), input)
    parts = input.reshape((mesh.size(), -1))
    total = _reduced(stacked(parts, mesh), op, input.dtype)
    mine = _local(total, mesh, Shard(0), input)
    _write(output, mine.reshape(output.shape))
    return _work(async_op)


@located
def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    return reduce_scatter_tensor(output, aten("stack")(list(input_list)), op, group, async_op)


@located
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give process i part i of what each has, along the first dimension."""
    if output_split_sizes or input_split_sizes:
        raise ArgumentError("parts are of one size", help="leave the split sizes out, or pad the parts")
    mesh = _mesh(world_of(group), input)
    parts = input.reshape((mesh.size(), -1))
    mine = _local(stacked(parts, mesh), mesh, Shard(1), input)
    _write(output, mine.reshape(output.shape))
    return _work(async_op)


@located
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give process i tensor i of what each has."""
    given = aten("stack")(list(input_tensor_list))
    taken = aten("empty_like")(given)
    all_to_all_single(taken, given, group=group)
    for i, target in enumerate(output_tensor_list):
        _write(target, taken[i])
    return _work(async_op)


@located
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give process i tensor i of what process `src` has."""
    world = world_of(group)
    count = world.size()
    own = aten("stack")(list(scatter_list)) if get_rank() == src and scatter_list else None
    given = aten("zeros_like")(aten("stack")([tensor] * count)) if own is None else own
    mesh = _mesh(world, tensor)
    chosen = stacked(given, mesh)[world.ranks.index(src)]
    _write(tensor, _local(chosen, mesh, Shard(0), tensor)[0])
    return _work(async_op)


@located
def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> None:
    """Give a tensor to process `dst`, which receives it."""
    broadcast(tensor, get_rank(), _pair(get_rank(), dst))


@located
def recv(tensor: Tensor, src: int, group: ProcessGroup | None = None, tag: int = 0) -> int:
    """Take a tensor from process `src`, which sends it."""
    broadcast(tensor, src, _pair(src, get_rank()))
    return src


def _pair(one: int, other: int) -> ProcessGroup:
    if one == other:
        raise ArgumentError(f"rank {one} sends nothing to itself")
    key = (min(one, other), max(one, other))
    return world_of(None).pairs.setdefault(key, ProcessGroup(key))


@located
def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes are here."""
    if world_of(group).size() > 1:
        all_reduce(leaf(np.zeros((), np.float32), Device("cpu")), group=group)
    return _work(async_op)


# Python objects, through the coordination service

KEPT = 8  # objects that a process leaves in the service before it looks which have been read


def _exchange(own: Any, ranks: Sequence[int], sources: Sequence[int]) -> list[Any]:
    """What the sources have, as Python objects. They come from processes of this program."""
    from tenfold.engines import processes

    connection = processes.current
    assert connection is not None
    if connection.runtime is None:
        return [own]
    name = "-".join(map(str, ranks))
    number = connection.exchanged[name] = connection.exchanged.get(name, 0) + 1
    if connection.rank in sources:
        _forget_read(connection, name, ranks)
        connection.set(f"object/{name}/{number}/{connection.rank}", pickle.dumps(own).hex())
        connection.kept.setdefault(name, []).append(number)
    found = [
        pickle.loads(bytes.fromhex(connection.get(f"object/{name}/{number}/{source}", source)))
        for source in sources
    ]
    connection.set(f"read/{name}/{connection.rank}", str(number))
    return found


def _forget_read(connection: Any, name: str, ranks: Sequence[int]) -> None:
    """Remove objects from the service that all processes of a group have read."""
    kept = connection.kept.get(name, [])
    if len(kept) < KEPT:
        return
    read = min(int(connection.known(f"read/{name}/{rank}") or 0) for rank in ranks)
    for number in kept:
        if number <= read:
            connection.forget(f"object/{name}/{number}/{connection.rank}")
    connection.kept[name] = [number for number in kept if number > read]


@located
def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write every process's object into the list."""
    ranks = world_of(group).ranks
    object_list[:] = _exchange(obj, ranks, ranks)


@located
def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: ProcessGroup | None = None, device: Any = None
) -> None:
    """Let every process's list be that of process `src`."""
    object_list[:] = _exchange(list(object_list), world_of(group).ranks, [src])[0]


@located
def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: ProcessGroup | None = None
) -> None:
    ranks = world_of(group).ranks
    found = _exchange(obj, ranks, ranks)
    if get_rank() == dst and object_gather_list is not None:
        object_gather_list[:] = found
