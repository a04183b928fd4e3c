"""Collectives between processes on plain tensors, by PyTorch's names.

Each is a small program over a mesh with one device of each process. The tensor of a process is its part of a
tensor on that mesh, and XLA moves and reduces the data.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, located
from tenfold.base.warning import warn
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.group import ProcessGroup, chosen_rank, get_rank, world_of
from tenfold.distributed.tensor.edges import own_part, stacked
from tenfold.distributed.tensor.placements import Placement, Replicate, Shard, sharding_by
from tenfold.distributed.work import Work
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.tensor.dispatch import aten

Declared = TypeVar("Declared", bound=Callable[..., Any])


class ReduceOp(enum.Enum):
    """How values of all processes are reduced: SUM, AVG, PRODUCT, MIN, MAX, …"""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's type of the members


class _Outside(Exception):
    """This process is not in the group."""


def _collective(function: Declared) -> Declared:
    """A collective. A process that is not in its group does nothing, as in PyTorch, and is told so."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _Outside:
            warn(f"{function.__name__}: rank {get_rank()} is not in the group, so it does nothing")
            return None

    return located(call)  # type: ignore[return-value]


def _work(async_op: bool, *results: Tensor) -> Work | None:
    return Work(results) if async_op else None


def _mesh(group: ProcessGroup, tensor: Tensor) -> DeviceMesh:
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"a collective takes tensors, not a {type(tensor).__name__}")
    if group.rank() < 0:
        raise _Outside
    return group.mesh(tensor.device.type)


def _local(result: Tensor, mesh: DeviceMesh, placement: Placement, like: Tensor) -> Tensor:
    """This process's part of a result that is placed so, as a plain tensor."""
    placed = sharding.constrain(result, sharding_by(mesh, [placement], result.ndim))
    del result  # what nobody holds is not a result of the program
    local = own_part(placed)
    return local if local.device is like.device else local.to(like.device)


def _reduced(stacked: Tensor, op: ReduceOp, dtype: Any) -> Tensor:
    """The stack with its first dimension folded up."""
    if not isinstance(op, ReduceOp):
        raise ArgumentError(f"{op!r} is no ReduceOp", help="use ReduceOp.SUM, or another of its members")
    if op is ReduceOp.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise DTypeError(f"ReduceOp.AVG is not defined for {dtype}", help="add up, and divide the sum")
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
    if value.dtype is not target.dtype:
        raise DTypeError(f"a result of {value.dtype} does not fit a tensor of {target.dtype}")
    with no_grad():
        if value.device is target.device:
            target.assign(value.current())  # values do not change, so that nothing is copied
        else:
            target.copy_(value)


def _reshaped(value: Tensor, target: Tensor) -> Tensor:
    """A result in the shape of what it is written to."""
    if value.numel() != target.numel():
        raise ShapeError(f"a result of {value.numel()} elements does not fit {tuple(target.shape)}")
    return value.reshape(target.shape)


@_collective
def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all processes, in place, to the sum or by another `op`."""
    mesh = _mesh(world_of(group), tensor)
    _write(tensor, _local(_reduced(stacked(tensor, mesh), op, tensor.dtype), mesh, Replicate(), tensor))
    return _work(async_op, tensor)


@_collective
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce a tensor over all processes onto process `dst`."""
    world = world_of(group)
    mesh, dst = _mesh(world, tensor), chosen_rank(world, dst, group_dst, "dst")
    total = _local(_reduced(stacked(tensor, mesh), op, tensor.dtype), mesh, Replicate(), tensor)
    if get_rank() == dst:
        _write(tensor, total)
    return _work(async_op, tensor)


@_collective
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send the tensor of process `src` to all others, in place."""
    world = world_of(group)
    mesh, src = _mesh(world, tensor), chosen_rank(world, src, group_src, "src")
    chosen = stacked(tensor, mesh)[world.ranks.index(src)]
    _write(tensor, _local(chosen, mesh, Replicate(), tensor))
    return _work(async_op, tensor)


def _gathered(tensor: Tensor, group: ProcessGroup | None) -> Tensor:
    mesh = _mesh(world_of(group), tensor)
    return _local(stacked(tensor, mesh), mesh, Replicate(), tensor)


@_collective
def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gather every process's tensor into a list, in the order of ranks. The shapes may differ."""
    world = world_of(group)
    _mesh(world, tensor)
    _check_list(tensor_list, world, tensor)
    place = world.rank()
    own = tensor_list[place]
    if tuple(own.shape) != tuple(tensor.shape):
        raise ShapeError(
            f"the tensor has the shape {tuple(tensor.shape)}, and its place in the list, {place}, has "
            f"{tuple(own.shape)}"
        )
    if len({tuple(target.shape) for target in tensor_list}) == 1:
        _write_each(tensor_list, _gathered(tensor, group))
        return _work(async_op, *tensor_list)
    room = max(target.numel() for target in tensor_list)
    everything = _gathered(_filled(tensor.reshape((-1,)), room), group)
    for i, target in enumerate(tensor_list):
        _write(target, everything[i, : target.numel()].reshape(target.shape))
    return _work(async_op, *tensor_list)


def _check_list(tensors: Sequence[Tensor], world: ProcessGroup, like: Tensor) -> None:
    if len(tensors) != world.size():
        raise ArgumentError(f"a list of {len(tensors)} tensors for a group of {world.size()} processes")
    if any(tensor.dtype is not like.dtype for tensor in tensors):
        raise DTypeError(f"tensors of the list are not all {like.dtype}, as the other tensor is")


def _filled(row: Tensor, room: int) -> Tensor:
    """A row with zeros at its end."""
    return aten("constant_pad_nd")(row, (0, room - row.shape[0]))


def _write_each(targets: Sequence[Tensor], parts: Tensor) -> None:
    for i, target in enumerate(targets):
        _write(target, parts[i])


@_collective
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gather every process's tensor into one, concatenated along the first dimension or stacked."""
    everything = _gathered(input_tensor, group)
    _write(output_tensor, _reshaped(everything, output_tensor))
    return _work(async_op, output_tensor)


@_collective
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather every process's tensor on process `dst`, by default the first."""
    world = world_of(group)
    _mesh(world, tensor)
    is_target = get_rank() == _or_first(world, dst, group_dst, "dst")
    targets = list(gather_list or ()) if is_target else []
    if is_target:
        _check_list(targets, world, tensor)
    everything = _gathered(tensor, group)
    _write_each(targets, everything)
    return _work(async_op, *targets)


def _or_first(world: ProcessGroup, rank: int | None, place: int | None, name: str) -> int:
    return chosen_rank(world, 0 if rank is None and place is None else rank, place, name)


@_collective
def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a tensor over all processes, and give each process its part along the first dimension."""
    mesh = _mesh(world_of(group), input)
    if input.numel() % mesh.size():
        raise ShapeError(f"a tensor of {tuple(input.shape)} cannot be split over {mesh.size()} processes")
    parts = input.reshape((mesh.size(), input.numel() // mesh.size()))
    total = _reduced(stacked(parts, mesh), op, input.dtype)
    mine = _local(total, mesh, Shard(0), input)
    _write(output, _reshaped(mine, output))
    return _work(async_op, output)


@_collective
def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce lists of tensors over all processes, and give process i the i-th result."""
    return reduce_scatter_tensor(output, aten("stack")(list(input_list)), op, group, async_op)


@_collective
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Split a tensor along the first dimension and send part i to process i."""
    world = world_of(group)
    _mesh(world, input)
    given = _sizes(input_split_sizes, input, world.size(), "input_split_sizes")
    taken = _sizes(output_split_sizes, output, world.size(), "output_split_sizes")
    arrived = _exchanged_parts(input.reshape((-1,)), given, taken, world)
    _write(output, arrived.reshape(output.shape))
    return _work(async_op, output)


@_collective
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send tensor i of each process's list to process i. The shapes may differ."""
    world = world_of(group)
    _mesh(world, input_tensor_list[0])
    for tensors in (input_tensor_list, output_tensor_list):
        _check_list(tensors, world, input_tensor_list[0])
    row = aten("cat")([tensor.reshape((-1,)) for tensor in input_tensor_list])
    sizes = [tensor.numel() for tensor in output_tensor_list]
    parts = _exchanged_parts(row, [tensor.numel() for tensor in input_tensor_list], sizes, world)
    for target, part in zip(output_tensor_list, parts.split(sizes), strict=True):
        _write(target, part.reshape(target.shape))
    return _work(async_op, *output_tensor_list)


def _sizes(sizes: Sequence[int] | None, tensor: Tensor, count: int, name: str) -> list[int]:
    """How many elements each part of a tensor has that is split along its first dimension: evenly, unless
    sizes are given."""
    if not tensor.ndim:
        raise ShapeError("a tensor without dimensions has no parts")
    extent = tensor.shape[0]
    chosen = list(sizes) if sizes else [extent // count] * count
    if len(chosen) != count or sum(chosen) != extent:
        raise ShapeError(f"{name} {chosen} do not add up to {extent} in {count} parts")
    return [size * math.prod(tensor.shape[1:]) for size in chosen]


def _exchanged_parts(row: Tensor, given: Sequence[int], taken: Sequence[int], world: ProcessGroup) -> Tensor:
    """What all processes have for this one, one after the other: parts of the sizes `taken`, while this one
    has parts of the sizes `given`. Processes tell each other these sizes first, whether or not they are even,
    since none knows those of the others. Parts travel as large as the largest of all."""
    sizes = leaf(np.array([given, taken], np.int64), Device("cpu"))
    told = _gathered(sizes, world).tolist()
    for i, (sent, _) in enumerate(told):
        for j, (_, expected) in enumerate(told):
            if sent[j] != expected[i]:
                raise ShapeError(
                    f"rank {world.ranks[i]} has {sent[j]} elements for rank {world.ranks[j]}, which "
                    f"expects {expected[i]}"
                )
    room = max(max(sent) for sent, _ in told)
    if all(size == room for sent, _ in told for size in sent):
        return swapped(row.reshape((world.size(), room)), world).reshape((-1,))
    parts = [_filled(part, room) for part in row.split(list(given))]
    arrived = swapped(aten("stack")(parts), world)
    return aten("cat")([arrived[i, :size] for i, size in enumerate(taken)])


def swapped(parts: Tensor, world: ProcessGroup) -> Tensor:
    """The parts that all processes have for this one, stacked. All have stacks of one shape."""
    mesh = _mesh(world, parts)
    arrived = _local(stacked(parts, mesh), mesh, Shard(1), parts)
    return arrived.reshape(parts.shape)


@_collective
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send tensor i of process `src`, by default the first, to process i."""
    world = world_of(group)
    mesh, src = _mesh(world, tensor), _or_first(world, src, group_src, "src")
    if get_rank() == src:
        _check_list(scatter_list or [], world, tensor)
        given = aten("stack")(list(scatter_list or []))
    else:
        given = aten("zeros_like")(aten("stack")([tensor] * world.size()))
    chosen = stacked(given, mesh)[world.ranks.index(src)]
    _write(tensor, _local(chosen, mesh, Shard(0), tensor)[0])
    return _work(async_op, tensor)


@_collective
def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes arrive here."""
    world = world_of(group)
    if world.rank() < 0:
        raise _Outside
    if world.size() > 1:
        all_reduce(leaf(np.zeros((), np.float32), Device("cpu")), group=group)
    return _work(async_op)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: Any = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all processes arrive here; on a timeout, the error names one that has not."""
    barrier(group)


@_collective
def all_reduce_coalesced(
    tensors: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce several tensors over all processes, in place."""
    for tensor in tensors:
        all_reduce(tensor, op, group)
    return _work(async_op, *tensors)
