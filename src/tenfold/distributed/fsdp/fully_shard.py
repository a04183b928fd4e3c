"""`fully_shard`: each device keeps a part of every parameter, of its gradient and of the optimizer's state.

A module gathers its parameters for its forward pass, and again for the backward pass; gradients are reduced
and scattered. XLA places these collectives. This file says how parameters are sharded, and where they are
used whole."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, IndexOutOfRange, TenfoldError, UnsupportedError, located
from tenfold.base.meshes import Axis, Sharding
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.fsdp.rows import on_row, scatter_from_rows, without
from tenfold.distributed.gradients import (
    averaged_if_any,
    from_first,
    outside_of_compiled,
    plain,
    when_accumulated,
)
from tenfold.distributed.group import ProcessGroup, world_of
from tenfold.distributed.tensor.dtensor import DTensor, move_to_mesh, place
from tenfold.distributed.tensor.edges import process_ranks
from tenfold.distributed.tensor.inputs import as_batch, in_own_row, is_in_row, mapped
from tenfold.distributed.tensor.placements import Replicate, Shard
from tenfold.tensor import Tensor, sharding
from tenfold.tensor.dispatch import aten


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which parameters are gathered and inputs cast, gradients are reduced over devices, and
    results are returned; None means no cast. Layers with running statistics, such as BatchNorm, keep their
    parameters in the dtype of these."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


class OffloadPolicy:
    """The policy of no offloading: parameters stay on their devices."""


class CPUOffloadPolicy(OffloadPolicy):
    """Keeps parameters in host memory. This holds for meshes of CPU devices; for GPUs it is not supported."""


class UnshardHandle:
    """The result of `unshard(async_op=True)`."""

    def wait(self) -> None:
        """Does nothing: XLA waits where parameters are used."""


class FSDPModule:
    """The class that `fully_shard` adds to the class of a module."""

    _fsdp_mesh: DeviceMesh
    _fsdp_policy: MixedPrecisionPolicy

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass, on whole parameters."""
        mesh, policy = self._fsdp_mesh, self._fsdp_policy
        is_own = not mesh.root.own and (is_in_row(mesh) or not _any_on_mesh((args, kwargs)))
        _move_buffers(self, None if is_own else mesh)
        if not is_own:
            args, kwargs = _on_mesh((args, kwargs), mesh)
        if policy.cast_forward_inputs:
            args, kwargs = _cast((args, kwargs), policy.param_dtype)
        with (gathered_here if is_own else gathered)(self, mesh, policy):
            result = super().forward(*args, **kwargs)  # type: ignore[misc]
        return _cast(result, policy.output_dtype)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Allocate uninitialized data for all tensors on their devices, for a model that was built on the
        meta device and then sharded."""
        return self._apply(lambda tensor: _blank(tensor, device), recurse)  # type: ignore[attr-defined]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Does nothing: XLA gathers parameters where they are used."""
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Does nothing: parameters stay sharded."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Does nothing: gradients are whole as soon as they are there."""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Does nothing: gradients are whole as soon as they are there."""

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Does nothing: gradients are whole as soon as they are there."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Does nothing: XLA decides when parameters are gathered again."""

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Does nothing: parameters stay sharded."""

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Does nothing: XLA decides when parameters are gathered."""

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """Does nothing: XLA decides when parameters are gathered."""


@located
def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = True,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Tensor] | None = None,
) -> Any:
    """Shard a module's parameters over a mesh, or over some of its dimensions, in place.

    A parameter is split along its first dimension; a scalar is replicated. Parameters that are already on the
    mesh, by `parallelize_module`, are split further. Call it on the layers first and on the model last: each
    call makes one group of parameters, which are gathered together. Without a mesh, one device of each
    process is used.

    On two dimensions, parameters are replicated along the first and split along the second (hybrid sharding):
    gradients are reduced and scattered along the second, then reduced along the first. Batches are split over
    both.

    If a process passes plain tensors, it gets plain tensors: it computes on its own batch, with whole
    parameters and its own buffers, as in PyTorch.

    `shard_placement_fn(parameter)` may return the dimension along which to split a parameter, as Shard(dim).
    `reshard_after_forward` changes no result; XLA decides when parameters are gathered again.
    """
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    if mesh is None:
        mesh = world_of(None).mesh(_platform(modules))
    if mesh.ndim > 2:
        raise ArgumentError(
            f"fully_shard takes a mesh of one dimension, or of two, not {mesh}",
            help="give it those along which batches differ, as mesh['replicas', 'data']",
        )
    if isinstance(offload_policy, CPUOffloadPolicy) and mesh.device_type != "cpu":
        raise UnsupportedError("parameters are not kept in host memory", help="leave offload_policy out")
    ignored = {id(each) for each in ignored_params or ()}
    policy = mp_policy or MixedPrecisionPolicy()
    for each in modules:
        shard_over(each, mesh, mesh.axes[-1:], policy, ignored, shard_placement_fn)
    return modules if isinstance(module, (list, tuple)) else module


def _platform(modules: Sequence[Any]) -> str:
    """Where modules have their parameters. Those of the meta device will have them on GPUs, if there are
    any."""
    kinds = {parameter.device.type for each in modules for parameter in each.parameters()}
    if "meta" not in kinds:
        return min(kinds, default="cpu")
    from tenfold.engines import xla

    try:
        return xla.client("cuda").platform
    except TenfoldError:
        return "cpu"


def shard_over(
    module: Any,
    mesh: DeviceMesh,
    axes: tuple[Axis, ...],
    policy: MixedPrecisionPolicy,
    ignored: set[int],
    choose: Any = None,
) -> None:
    """Put a module's own parameters on a mesh, split over these of its axes, and let it gather them for its
    forward pass."""
    slots = own_parameters(module)
    for (owner, name), parameter in slots:
        if isinstance(parameter, DTensor):
            vars(owner).setdefault("_fsdp_in_layer", set()).add(name)
    for parameter in {id(parameter): parameter for _, parameter in slots}.values():
        if id(parameter) not in ignored:
            chosen = None if choose is None else choose(parameter)
            place(parameter, _split(parameter, mesh, axes, chosen))
    move_to_mesh(module, mesh, lambda name, tensor: [Replicate()] * mesh.ndim)
    kind = type(module)
    if not isinstance(module, FSDPModule):
        module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__doc__": kind.__doc__})
    vars(module)["_fsdp_mesh"] = mesh
    vars(module)["_fsdp_policy"] = policy


def _blank(tensor: Tensor, device: Any) -> Tensor:
    """A tensor of zeros in the place of one: on its mesh, or else on the device."""
    placed = sharding.placed_as(tensor)
    if placed is None:
        return aten("zeros_like")(tensor, device=device)
    zeros = np.zeros(tuple(tensor.shape), tensor.dtype.numpy)
    return sharding.put(zeros, tensor.current().type, placed)


def _is_in_layer(owner: Any, name: str) -> bool:
    """Whether a parameter was on the mesh before, by `parallelize_module`: its layer computes there."""
    return name in vars(owner).get("_fsdp_in_layer", ())


def own_modules(module: Any) -> Iterator[Any]:
    """A module and those in it, but for those that gather their own parameters."""
    yield module
    for child in module.children():
        if not isinstance(child, FSDPModule):
            yield from own_modules(child)


def own_parameters(module: Any) -> list[tuple[tuple[Any, str], Tensor]]:
    """The parameters that a module gathers itself, each with the layer that has it and its name there."""
    return [
        ((owner, name), parameter)
        for owner in own_modules(module)
        for name, parameter in owner._parameters.items()
        if parameter is not None
    ]


def _move_buffers(module: Any, mesh: DeviceMesh | None) -> None:
    """Let a module's own buffers be where it computes: in this process alone, or on a mesh, where all
    processes take those of the first."""
    buffers = [
        buffer for owner in own_modules(module) for buffer in owner._buffers.values() if buffer is not None
    ]
    moved = [buffer for buffer in buffers if isinstance(buffer, DTensor) is (mesh is None)]
    if mesh is None:
        for each in moved:
            each.become(plain(each).current(), None)
            vars(each).pop("_placed", None)
        return
    if moved and not mesh.root.own:
        from_first(moved, world_of(None).mesh(mesh.root.platform))
    for each in moved:
        place(each, Sharding.replicated(mesh.root, each.ndim))


def _split(parameter: Tensor, mesh: DeviceMesh, axes: tuple[Axis, ...], chosen: Shard | None) -> Sharding:
    """A parameter's sharding with these axes of the mesh added: in the dimension that is chosen, or in the
    first."""
    before = sharding.placed_as(parameter) or Sharding.replicated(mesh.root, parameter.ndim)
    if chosen is not None and not isinstance(chosen, Shard):
        raise ArgumentError(f"shard_placement_fn gives Shard(dim) or None, not {chosen!r}")
    if not parameter.ndim:
        return before
    dim = 0 if chosen is None else chosen.dim
    if not -parameter.ndim <= dim < parameter.ndim:
        raise IndexOutOfRange(f"{chosen} of a parameter of {parameter.ndim} dimensions")
    dims = list(before.dims)
    dims[dim] = (*(dims[dim] or ()), *axes)
    return Sharding(mesh.root, dims)


@contextlib.contextmanager
def gathered(module: Any, mesh: DeviceMesh, policy: MixedPrecisionPolicy) -> Iterator[None]:
    """A block in which a module has whole parameters in the place of its own."""
    whole: dict[int, Tensor] = {}
    slots = own_parameters(module)
    try:
        for (owner, name), parameter in slots:
            if id(parameter) not in whole:
                whole[id(parameter)] = _gather(parameter, mesh, policy, _dtype(owner, parameter, policy))
            owner._parameters[name] = whole[id(parameter)]
        yield
    finally:
        for (owner, name), parameter in slots:
            owner._parameters[name] = parameter


def _dtype(owner: Any, parameter: Tensor, policy: MixedPrecisionPolicy) -> DType:
    """In which dtype a layer computes with its parameter."""
    if policy.param_dtype is None or "running_mean" in owner._buffers:
        return parameter.dtype
    return policy.param_dtype


def _gather(parameter: Tensor, mesh: DeviceMesh, policy: MixedPrecisionPolicy, dtype: DType) -> Tensor:
    placed = sharding.placed_as(parameter)
    if placed is None:
        return parameter
    whole = without(placed, mesh.axes)
    if policy.reduce_dtype in (None, dtype):
        narrow = parameter if dtype is parameter.dtype else parameter.to(dtype)
        return narrow if whole is placed else sharding.constrain(narrow, whole, placed)
    return sharding.gather(parameter, whole, placed, dtype, policy.reduce_dtype)


def _any_on_mesh(arguments: Any) -> bool:
    found: list[bool] = []
    mapped(arguments, lambda each: found.append(isinstance(each, DTensor)))
    return any(found)


@contextlib.contextmanager
def gathered_here(module: Any, mesh: DeviceMesh, policy: MixedPrecisionPolicy) -> Iterator[None]:
    """A block in which a module of several processes computes for this one's batch. It has whole, plain
    parameters; those of layers that are split over other dimensions of the mesh are whole along this one. The
    backward pass leaves the means of their gradients, sharded, with the module's own parameters."""
    outside_of_compiled(
        "parameters of several processes are not gathered for plain tensors",
        "give the model tensors on the mesh, which distribute_tensor makes",
    )
    slots = own_parameters(module)
    pairs: dict[int, tuple[Tensor, Tensor]] = {}
    for (owner, name), parameter in slots:
        if id(parameter) not in pairs:
            whole = on_row(parameter, mesh) if _is_in_layer(owner, name) else plain(parameter)
            whole = whole.to(_dtype(owner, parameter, policy))
            pairs[id(parameter)] = parameter, whole.requires_grad_(parameter.requires_grad)
    trained = [pair for pair in pairs.values() if pair[0].requires_grad]
    in_layers = [pair for pair in trained if isinstance(pair[1], DTensor)]
    alone = [pair for pair in trained if not isinstance(pair[1], DTensor)]

    def scatter(reached: Any) -> None:
        if alone:
            _scatter(alone, mesh, policy.reduce_dtype)
        if in_layers:
            scatter_from_rows(in_layers, mesh, policy.reduce_dtype)

    when_accumulated([whole for _, whole in trained], object(), scatter)
    is_split = any("_fsdp_in_layer" in vars(owner) for owner in module.modules())
    try:
        for (owner, name), parameter in slots:
            owner._parameters[name] = pairs[id(parameter)][1]
        with in_own_row(mesh) if is_split else contextlib.nullcontext():
            yield
    finally:
        for (owner, name), parameter in slots:
            owner._parameters[name] = parameter


def _scatter(pairs: list[tuple[Tensor, Tensor]], mesh: DeviceMesh, dtype: Any) -> None:
    """Add the mean of each whole gradient, sharded, to that of its parameter."""
    wholes = [whole for _, whole in pairs]
    reached = [whole.grad is not None for whole in wholes]
    ranks = process_ranks(mesh.root)
    has_several = len(ranks) < mesh.root.size  # devices of one process
    if has_several:  # they have one gradient together
        mesh = ProcessGroup(ranks, "processes of a mesh").mesh(mesh.device_type)
    placed = [
        Sharding.replicated(mesh.root, whole.ndim) if has_several else sharding.placed_as(parameter)
        for parameter, whole in pairs
    ]
    means = averaged_if_any(wholes, reached, mesh, placed, dtype)  # type: ignore[arg-type]
    for (parameter, whole), mean in zip(pairs, means, strict=True):
        if mean is not None:
            own = mean.to(parameter.dtype)
            if has_several:
                own = sharding.leaf_like(own.to_local()._host(), parameter)
            parameter.grad = own if parameter.grad is None else parameter.grad + own
        whole.grad = None


def _on_mesh(arguments: Any, mesh: DeviceMesh) -> Any:
    """Arguments with their plain tensors as batches over the mesh."""
    return mapped(arguments, lambda each: each if isinstance(each, DTensor) else as_batch(each, mesh))


def _cast(nested: Any, dtype: Any) -> Any:
    """Nested containers with their tensors of floating-point numbers in a dtype, if one is given."""
    if dtype is None:
        return nested
    return mapped(nested, lambda each: each.to(dtype) if each.dtype.is_floating_point else each)


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """The most bytes that one of this process's devices holds of these tensors, as PJRT counts them."""
    from tenfold.engines import sharded

    by_device: list[int] = []
    for tensor in tensors:
        parts = sharded.bytes_here(tensor.eval()._buffer())
        by_device = [a + b for a, b in zip(by_device or [0] * len(parts), parts, strict=True)]
    return max(by_device, default=0)


def whole_bytes(tensors: Iterable[Tensor]) -> int:
    return sum([math.prod(tensor.shape) * tensor.dtype.itemsize for tensor in tensors])
