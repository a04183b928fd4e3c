"""Normalisations that PyTorch has in its outermost module with the arguments of ATen's ops: they update
running statistics in place."""

from __future__ import annotations

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ShapeError, located
from tenfold.nn import functional as F
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


@located
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.batch_norm`, with ATen's order of arguments."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@located
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.instance_norm`, with ATen's order of arguments."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@located
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The batch norm, and each channel's mean and 1 / √(variance + eps) while training."""
    statistics = (running_mean, running_var)
    if not training or running_mean is None or running_var is None:
        return aten("native_batch_norm")(input, weight, bias, *statistics, training, momentum, eps)
    found = aten("_native_batch_norm_legit_functional")(input, weight, bias, *statistics, True, momentum, eps)
    running_mean.copy_(found[3].detach())
    running_var.copy_(found[4].detach())
    return tuple(found[:3])


@located
def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """Each channel's mean and variance; the running statistics move by `momentum` towards the batch's."""
    if not input.numel():
        raise ShapeError(f"the input must have at least one element, unlike {input.current().type}")
    dims = [0, *range(2, input.ndim)]
    count = input.numel() // input.shape[1]
    with no_grad():
        variance, mean = aten("var_mean")(input, dims, correction=0)
        for running, moved in ((running_mean, mean), (running_var, variance * (count / max(count - 1, 1)))):
            if running is not None:
                running.mul_(1 - momentum).add_(moved, alpha=momentum)
    return mean, variance
