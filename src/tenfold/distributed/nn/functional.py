"""Collectives between processes that gradients flow through. Each returns its result and does not change its
arguments. All processes must run the backward passes too, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.autograd.function import Function
from tenfold.base.errors import ArgumentError, located
from tenfold.distributed import collectives
from tenfold.distributed.collectives import ReduceOp
from tenfold.distributed.group import ProcessGroup, get_rank, world_of
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


def _world(group: Any) -> ProcessGroup:
    return world_of(group if isinstance(group, ProcessGroup) else None)


def _stacked(tensors: Sequence[Tensor], world: ProcessGroup) -> Tensor:
    if len(tensors) != world.size():
        raise ArgumentError(f"{len(tensors)} tensors for a group of {world.size()} processes")
    return aten("stack")(list(tensors))


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: ReduceOp, world: ProcessGroup) -> Tensor:
        ctx.op, ctx.world = op, world
        total = tensor.detach().clone()
        collectives.all_reduce(total, op, world)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _AllReduce.apply(gradient, ctx.op, ctx.world), None, None


class _AllGather(Function):
    """Stacks what all processes have."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, world: ProcessGroup) -> Tensor:
        ctx.world = world
        everything = aten("zeros")((world.size(), *tensor.shape), dtype=tensor.dtype, device=tensor.device)
        collectives.all_gather_into_tensor(everything, tensor.detach(), world)
        return everything

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _ReduceScatter.apply(gradient, ReduceOp.SUM, ctx.world), None


class _ReduceScatter(Function):
    """Gives each process its part of the sum of stacks."""

    @staticmethod
    def forward(ctx: Any, stack: Tensor, op: ReduceOp, world: ProcessGroup) -> Tensor:
        ctx.world = world
        part = aten("zeros")(tuple(stack.shape[1:]), dtype=stack.dtype, device=stack.device)
        collectives.reduce_scatter_tensor(part, stack.detach(), op, world)
        return part

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _AllGather.apply(gradient, ctx.world), None, None


class _AllToAll(Function):
    """Gives process i part i of every stack."""

    @staticmethod
    def forward(ctx: Any, stack: Tensor, world: ProcessGroup) -> Tensor:
        ctx.world = world
        return collectives.swapped(stack.detach(), world)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _AllToAll.apply(gradient, ctx.world), None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, src: int, world: ProcessGroup) -> Tensor:
        ctx.src, ctx.world = src, world
        copy = tensor.detach().clone()
        collectives.broadcast(copy, src, world)
        return copy

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        total = _Reduce.apply(gradient, ctx.src, ReduceOp.SUM, ctx.world)
        if get_rank() != ctx.src:
            total.zero_()  # in place, so that a second backward pass runs in all processes
        return total, None, None


class _Reduce(Function):
    """The sum in process `dst`; the others keep what they have."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, op: ReduceOp, world: ProcessGroup) -> Tensor:
        ctx.dst, ctx.world = dst, world
        total = tensor.detach().clone()
        collectives.reduce(total, dst, op, world)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _Broadcast.apply(gradient, ctx.dst, ctx.world), None, None, None


class _Gather(Function):
    """Stacks what all processes have in process `dst`; the others get zeros."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, world: ProcessGroup) -> Tensor:
        ctx.dst, ctx.world = dst, world
        rows = [aten("zeros_like")(tensor.detach()) for _ in world.ranks]
        collectives.gather(tensor.detach(), rows if get_rank() == dst else None, dst, world)
        return aten("stack")(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _Scatter.apply(gradient, ctx.dst, ctx.world), None, None


class _Scatter(Function):
    """Row i of the stack of process `src`, in process i."""

    @staticmethod
    def forward(ctx: Any, stack: Tensor, src: int, world: ProcessGroup) -> Tensor:
        ctx.src, ctx.world = src, world
        rows = list(stack.detach().unbind(0))
        own = aten("zeros_like")(rows[0])
        collectives.scatter(own, rows if get_rank() == src else None, src, world)
        return own

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _Gather.apply(gradient, ctx.src, ctx.world), None, None


@located
def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Reduce a tensor over all processes to the sum or by another `op`, with gradients."""
    return _AllReduce.apply(tensor, op, _world(group))


@located
def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Like all_reduce, but only process `dst` gets the result; the others get their own tensor."""
    return _Reduce.apply(tensor, dst, op, _world(group))


@located
def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Send the tensor of process `src` to all others, with gradients."""
    return _Broadcast.apply(tensor, src, _world(group))


@located
def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Gather every process's tensor, with gradients."""
    return tuple(_AllGather.apply(tensor, _world(group)).unbind(0))


@located
def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Like all_gather, but only process `dst` gets the tensors; the others get zeros."""
    return tuple(_Gather.apply(tensor, dst, _world(group)).unbind(0))


@located
def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Send tensor i of process `src` to process i, with gradients."""
    world = _world(group)
    return _Scatter.apply(_stacked(tensors, world), src, world)


@located
def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """Reduce the tensors at this process's index in the lists of all processes. `output` gives the shape."""
    if op is not ReduceOp.SUM:
        raise ArgumentError("reduce_scatter adds up where gradients flow through it")
    world = _world(group)
    return _ReduceScatter.apply(_stacked(input_list, world), op, world)


@located
def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """The tensors at this process's index in the lists of all processes; `output_tensor_list` gives the
    shapes."""
    world = _world(group)
    return tuple(_AllToAll.apply(_stacked(input_tensor_list, world), world).unbind(0))


@located
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Split a tensor along the first dimension and send part i to process i, with gradients."""
    if output_split_sizes or input_split_sizes:
        raise ArgumentError("parts are of one size where gradients flow", help="pad them")
    world = _world(group)
    stack = input.reshape((world.size(), -1))
    return _AllToAll.apply(stack, world).reshape(output.shape)
