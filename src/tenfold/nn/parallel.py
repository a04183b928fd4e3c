"""`nn.parallel`: a module on several devices. `DataParallel` is the module itself with another one around it,
as it is in PyTorch without a GPU; `DistributedDataParallel` splits batches over a mesh."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tenfold.base.absent import AbsentModule
from tenfold.base.errors import UnsupportedError, located
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.gradients import (
    average_in_place,
    from_first,
    outside_of_compiled,
    when_accumulated,
)
from tenfold.distributed.group import world_of
from tenfold.distributed.tensor.dtensor import DTensor, distribute_module
from tenfold.distributed.tensor.inputs import as_batch, mapped
from tenfold.nn.module import Module
from tenfold.tensor import Tensor
from tenfold.trace.context import context

__all__ = ["DataParallel", "DistributedDataParallel"]

_absent = AbsentModule.of("torch.nn.parallel")


class DataParallel(Module):
    """A module, in another whose weights' names start with `module.`; calls go to it as they are."""

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
    """A module that every process has, each with its own batches; the weights' names start with `module.`.
    All start with the parameters of the first, and gradients are the means over all processes. Before a
    forward pass all take the buffers of the first, unless `broadcast_buffers` is False.

    With a `device_mesh`, batches are split over its devices, be they of one process or of several: what the
    module gives is then a DTensor, and XLA adds up the gradients.
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
                outside_of_compiled("gradients are not averaged over processes", _COMPILE)
                average_in_place(parameters, reached, mesh)

        when_accumulated(parameters, self, synchronize)

    def _take_buffers(self) -> None:
        """Take the first process's buffers, unless the last forward pass followed no gradients: PyTorch's
        rule, by which one process may evaluate alone."""
        wanted = self.require_forward_param_sync
        self.require_forward_param_sync = context.grad_enabled and self.require_backward_grad_sync
        if self._mesh is None or not (wanted and self.broadcast_buffers):
            return
        buffers = list(self.module.buffers())
        if buffers:
            outside_of_compiled("buffers are not taken from the first process", _COMPILE)
            from_first(buffers, self._mesh)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose backward passes leave gradients as each process has them, to be accumulated."""
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
