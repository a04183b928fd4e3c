"""`SyncBatchNorm`: batch normalisation over the batches of all processes."""

from __future__ import annotations

from typing import Any

from tenfold.autograd.function import Function
from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.distributed.collectives import all_reduce
from tenfold.distributed.group import ProcessGroup, is_initialized, world_of
from tenfold.nn.module import Module, in_layer
from tenfold.nn.normalisation import _BatchNorm
from tenfold.nn.parameter import filled
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


class _Normalise(Function):
    """(x - mean) / sqrt(var + eps) by the statistics of all batches, with these and the count of elements.
    All are float32 where the input is narrower."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float, group: ProcessGroup) -> tuple[Tensor, ...]:
        dims, shape = [d for d in range(x.ndim) if d != 1], (1, -1, *[1] * (x.ndim - 2))
        x = x.to(dtypes.promote_types(x.dtype, dtypes.float32))
        count = filled((1,), x.numel() // x.shape[1], x.dtype, x.device)
        sums = aten("cat")([x.sum(dims), count])
        all_reduce(sums, group=group)
        count = sums[-1]
        mean = sums[:-1] / count
        centred = x - mean.reshape(shape)
        squares = (centred * centred).sum(dims)
        all_reduce(squares, group=group)
        var = squares / count
        inverse = (var + eps).rsqrt().reshape(shape)
        normal = centred * inverse
        ctx.save_for_backward(normal, inverse, count)
        ctx.group = group
        ctx.mark_non_differentiable(mean, var, count)
        return normal, mean, var, count

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        normal, inverse, count = ctx.saved_tensors
        ct = cotangents[0]
        dims, shape = [d for d in range(ct.ndim) if d != 1], (1, -1, *[1] * (ct.ndim - 2))
        sums = aten("stack")([ct.sum(dims), (ct * normal).sum(dims)])
        all_reduce(sums, group=ctx.group)
        along, across = ((each / count).reshape(shape) for each in (sums[0], sums[1]))
        return (ct - along - normal * across) * inverse, None, None


class SyncBatchNorm(_BatchNorm):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, by the statistics of each channel in the batch

    Input (N, C, *). In training, the statistics are those of the batches of all processes together. On a
    mesh, every batch norm works like this.

        nn.SyncBatchNorm(3)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 8, 8]
    """

    @in_layer
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        if process_group is not None and not isinstance(process_group, ProcessGroup):
            raise ArgumentError(f"takes a process group, not a {type(process_group).__name__}")
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        alone = not is_initialized() or world_of(self.process_group).size() == 1
        if alone or not self.training or input.device.mesh is not None:
            return super().forward(input)
        self._check_input_dim(input)
        normal, mean, var, count = _Normalise.apply(input, self.eps, world_of(self.process_group))
        shape = (1, -1, *[1] * (input.ndim - 2))
        if self.track_running_stats:
            self._follow(mean, var * count / (count - 1).clamp(min=1))
        if self.weight is not None:
            normal = normal * self.weight.reshape(shape)
        if self.bias is not None:
            normal = normal + self.bias.reshape(shape)
        return normal.to(input.dtype)

    def _follow(self, mean: Tensor, var: Tensor) -> None:
        """Let the running statistics follow those of the batch."""
        with no_grad():
            self.num_batches_tracked.add_(1)
            part = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
            for running, of_batch in ((self.running_mean, mean), (self.running_var, var)):
                running.add_((of_batch - running) * part)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ShapeError(f"takes 2 dimensions or more, not {input.ndim}")
        if not input.shape[1]:
            raise ShapeError("takes one channel or more")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace each `BatchNorm` in a module by a SyncBatchNorm with the same parameters and buffers."""
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            made.weight, made.bias = module.weight, module.bias
            made.running_mean, made.running_var = module.running_mean, module.running_var
            made.num_batches_tracked = module.num_batches_tracked
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
