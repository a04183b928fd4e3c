"""`nn.parallel`: a module on several devices. `DataParallel` is the module itself with another one around it,
as it is in PyTorch without a GPU; `DistributedDataParallel` splits batches over a mesh."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenfold.base.absent import AbsentModule
from tenfold.base.errors import ArgumentError, DistributedError, UnsupportedError, located
from tenfold.distributed.collectives import all_reduce
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.gradients import (
    GradBucket,
    average_in_place,
    combine_by_hook,
    from_first,
    outside_of_compiled,
    when_accumulated,
)
from tenfold.distributed.group import world_of
from tenfold.distributed.tensor.dtensor import DTensor, distribute_module
from tenfold.distributed.tensor.inputs import as_batch, mapped
from tenfold.distributed.uneven import Plan, UnevenInputs, follow
from tenfold.nn.module import Module
from tenfold.tensor import Tensor
from tenfold.trace.context import context

__all__ = ["DataParallel", "DistributedDataParallel"]

_absent = AbsentModule.of("torch.nn.parallel")


class DataParallel(Module):
    """Wraps a module under the name `module`, as in PyTorch's checkpoints, and passes calls through

    nn.DataParallel(nn.Linear(3, 4))(tn.ones(2, 3)).shape  # [2, 4]
    """

    @located
    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise UnsupportedError(
                f"a batch is not spread over {len(device_ids)} devices",
                help="leave device_ids out, or give one",
            )
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or [])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """Replicates a module in every process, each with its own batches. Parameter names start with `module.`.

    All processes start with the parameters of the first, and average their gradients. Before a forward pass,
    they take the buffers of the first process, unless `broadcast_buffers` is False.

    With a `device_mesh`, batches are split over its devices, in one process or several. The module then
    returns a DTensor, and XLA sums the gradients.
    """

    @located
    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: DeviceMesh | None = None,
        skip_all_reduce_unused_params: bool = False,
    ):
        super().__init__()
        _refuse(delay_all_reduce_named_params, "delay_all_reduce_named_params", "leave it out")
        _refuse(param_to_hook_all_reduce, "param_to_hook_all_reduce", "leave it out")
        _refuse(mixed_precision, "mixed_precision", "use tenfold.autocast in the forward pass")
        if dim != 0:
            raise UnsupportedError("batches are split in dimension 0", help="leave dim out")
        self.device_mesh, self.require_backward_grad_sync = device_mesh, True
        self.broadcast_buffers, self.require_forward_param_sync = broadcast_buffers, True
        self._mesh: DeviceMesh | None = None
        self._hook: Callable[[GradBucket], Any] | None = None
        self._uneven: UnevenInputs | None = None  # inside of join
        self.module = module if device_mesh is None else distribute_module(module, device_mesh)
        if device_mesh is None:
            self._group = world_of(process_group)
            self._join(init_sync)

    def _join(self, init_sync: bool) -> None:
        """Start as the others do, and hear of each backward pass."""
        if self._group.size() == 1:
            return
        parameters = list(self.module.parameters())
        mesh = self._mesh = self._group.mesh(parameters[0].device.type if parameters else "cpu")
        if init_sync:
            from_first([*parameters, *self.module.buffers()], mesh)

        def synchronize(reached: Sequence[Tensor]) -> None:
            if self.require_backward_grad_sync:
                self._average(parameters, reached)

        when_accumulated(parameters, self, synchronize)

    def _average_nothing(self) -> None:
        """Take part in averaging gradients with zeros; this process's own stay what they are."""
        parameters = [each.detach().requires_grad_(each.requires_grad) for each in self.module.parameters()]
        self._average(parameters, ())

    def _average(self, parameters: Sequence[Tensor], reached: Sequence[Tensor]) -> None:
        """Bring gradients of all processes together, after a backward pass that has reached these here."""
        assert self._mesh is not None
        outside_of_compiled("gradients are not averaged over processes", _COMPILE)
        if self._hook is not None:
            combine_by_hook(parameters, reached, self._total, self._hook)
            return
        average_in_place(parameters, reached, self._mesh, 1.0 if self._uneven is None else self._uneven.scale)

    def _total(self, tensor: Tensor) -> Tensor:
        all_reduce(tensor, group=self._group)
        return tensor

    @located
    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Combine gradients by `hook(state, bucket)` instead of averaging them. The hook returns a future of
        the bucket's new, flat tensor. The gradients of each dtype form one bucket."""
        if not callable(hook):
            raise ArgumentError("Communication hook must be callable.")
        if self._hook is not None:
            raise DistributedError("register_comm_hook can only be called once.")
        if self.device_mesh is not None:
            raise UnsupportedError(
                "XLA adds up the gradients of a module on a mesh, so no hook does",
                help="leave device_mesh out",
            )
        self._hook = lambda bucket: hook(state, bucket)

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """A block in which processes may have different numbers of batches. A process that has run out joins
        the others' collectives with gradients of zero, and takes the last process's parameters at the end.
        Gradients are divided by the number of all processes, or of those that still have batches."""
        if self.device_mesh is not None:
            raise UnsupportedError("batches on a mesh are those of all processes", help="leave join out")
        if not enable or self._mesh is None:
            yield
            return
        inputs = UnevenInputs(self._group, divide_by_initial_world_size, throw_on_early_termination)
        self._uneven = inputs
        try:
            yield
            follow(inputs, self)
        finally:
            self._uneven = None

    def _take_buffers_of(self, place: int) -> None:
        outside_of_compiled("buffers are not taken from another process", _COMPILE)
        assert self._mesh is not None
        from_first(list(self.module.buffers()), self._mesh, place)

    def _take_all_of(self, place: int) -> None:
        assert self._mesh is not None
        from_first([*self.module.parameters(), *self.module.buffers()], self._mesh, place)

    def _take_buffers(self) -> None:
        """Take the first process's buffers, unless the last forward pass followed no gradients: PyTorch's
        rule, by which one process may evaluate alone."""
        wanted = self.require_forward_param_sync
        self.require_forward_param_sync = context.grad_enabled and self.require_backward_grad_sync
        takes = wanted and self.broadcast_buffers and any(True for _ in self.module.buffers())
        source = 0
        if self._uneven is not None:
            averages = context.grad_enabled and self.require_backward_grad_sync
            current = self._uneven.begin(Plan(True, averages, takes))
            takes, source = current.takes_buffers, current.source
        if self._mesh is not None and takes:
            self._take_buffers_of(source)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose backward passes accumulate gradients in each process, without averaging them."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        mesh = self.device_mesh
        if mesh is None:
            self._take_buffers()
            return self.module(*inputs, **kwargs)
        args, named = mapped(
            (inputs, kwargs), lambda each: each if isinstance(each, DTensor) else as_batch(each, mesh)
        )
        return self.module(*args, **named)


_COMPILE = (
    "give DistributedDataParallel a device_mesh, and batches on it; or compile the module that it takes, and "
    "call this one, and backward, outside of the compiled function"
)


def _refuse(given: Any, name: str, help: str) -> None:
    if given is not None:
        raise UnsupportedError(f"{name} is not supported", help=help)


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
