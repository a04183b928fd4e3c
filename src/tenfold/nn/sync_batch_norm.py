"""`SyncBatchNorm`: batch normalisation over the batches of all processes. Of those there is one."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ShapeError, UnsupportedError
from tenfold.nn.module import Module, in_layer
from tenfold.nn.normalisation import _BatchNorm
from tenfold.tensor import Tensor


class SyncBatchNorm(_BatchNorm):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, by the statistics of each channel in the batch

    Input (N, C, *). Where PyTorch would take the statistics of all processes, these are those of the only
    one; so that models which have such layers run.
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
        if process_group is not None:
            raise UnsupportedError(
                "takes no process group: there is one process", help="leave process_group out"
            )
        self.process_group = None

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ShapeError(f"takes 2 dimensions or more, not {input.ndim}")
        if not input.shape[1]:
            raise ShapeError("takes one channel or more")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with such a layer in the place of each `BatchNorm` in it, which has the other's
        parameters and buffers."""
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
