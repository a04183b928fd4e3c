"""Normalisations of `tenfold.nn.functional`: wrappers of rows, and running statistics written in place."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

rms_norm = aten("rms_norm")


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / √(variance + eps) · weight + bias, over the last dimensions

    Input and output (*, *normalized_shape).

        F.layer_norm(tn.tensor([[1.0, 3.0]]), (2,))  # [[-1.0, 1.0]]
    """
    return aten("layer_norm")(input, normalized_shape, weight, bias, eps)


@located
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / √(variance + eps) · weight + bias, over groups of channels

    Input and output (N, C, *).

        F.group_norm(tn.ones(2, 4, 8), 2).shape  # [2, 4, 8]
    """
    if input.ndim >= 2 and num_groups > 0:
        batch, channels, *rest = input.shape
        if math.prod([batch * channels // num_groups, *rest]) == 1:
            raise ShapeError(f"needs more than one value for each group, not {tuple(input.shape)}")
    return aten("group_norm")(input, num_groups, weight, bias, eps)


@located
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / √(variance + eps) · weight + bias, for each channel

    In training, the statistics are those of the batch, and the running ones move towards them by `momentum`.

    Input and output (N, C, *).

        F.batch_norm(tn.ones(2, 3, 8), tn.zeros(3), tn.ones(3)).shape  # [2, 3, 8]
    """
    if training and input.ndim >= 2 and math.prod(input.shape) == input.shape[1]:
        raise ShapeError(f"training needs more than one value for each channel, not {tuple(input.shape)}")
    if eps < 0 or (training and eps == 0):
        raise ArgumentError(f"eps={eps} must be {'positive' if training else 'zero or more'}")
    if not training or running_mean is None or running_var is None or not input.numel():
        if training and (running_mean is None) != (running_var is None):
            raise ArgumentError("takes running_mean and running_var, or neither")
        return aten("batch_norm")(
            input, weight, bias, running_mean, running_var, training, momentum, eps, True
        )
    found = aten("_native_batch_norm_legit_functional")(
        input, weight, bias, running_mean, running_var, True, momentum, eps
    )
    running_mean.copy_(found[3].detach())
    running_var.copy_(found[4].detach())
    return found[0]


@located
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / √(variance + eps) · weight + bias, for each channel of each instance

    If running statistics are given, they move by `momentum` towards the mean over the instances.

    Input and output (N, C, *).

        F.instance_norm(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """
    if use_input_stats and input.ndim >= 2 and math.prod(input.shape[2:]) == 1:
        raise ShapeError(f"needs more than one value for each instance, not {tuple(input.shape)}")
    result = aten("instance_norm")(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )
    if use_input_stats and running_mean is not None and running_var is not None and input.numel():
        batch, channels = input.shape[:2]
        rows = input.detach().reshape(1, batch * channels, -1)
        stats = [each.repeat(batch).to(rows.dtype) for each in (running_mean, running_var)]
        moved = aten("_native_batch_norm_legit_functional")(rows, None, None, *stats, True, momentum, eps)
        running_mean.copy_(moved[3].reshape(batch, channels).mean(0))
        running_var.copy_(moved[4].reshape(batch, channels).mean(0))
    return result


@located
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """input / (k + alpha · mean of squares over `size` neighbouring channels)^beta

    Input and output (N, C, *).

        F.local_response_norm(tn.ones(2, 3, 8), 2).shape  # [2, 3, 8]
    """
    if input.ndim < 3:
        raise ShapeError(f"takes a batch, channels and places, not {input.ndim} dimensions")
    if not input.numel():
        return input
    channels, before = input.shape[1], size // 2
    around = (0, 0) * (input.ndim - 2) + (before, (size - 1) // 2)
    squares = aten("constant_pad_nd")(input * input, around, 0.0)
    total = squares.narrow(1, 0, channels)
    for place in range(1, size):
        total = total + squares.narrow(1, place, channels)
    if not (input.is_floating_point() or input.is_complex()):
        total, size = total // size, 1  # as PyTorch's means of integers are
    return input / (total * (alpha / size) + k) ** beta
