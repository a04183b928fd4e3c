"""Normalisation by statistics of the batch, or of each element of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.base.warning import warn
from tenfold.nn import functional as F, init
from tenfold.nn.module import Module, in_layer
from tenfold.nn.parameter import filled, new_parameter
from tenfold.tensor import Tensor


class _NormBase(Module):
    """A weight and a bias for each channel, and running statistics: those of all batches so far."""

    _version = 2
    _ranks: tuple[int, ...]  # of inputs
    _by_batch: bool  # whether statistics are over the whole batch

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        place = {"dtype": dtype, "device": device}
        size = (num_features,)
        self.register_parameter("weight", new_parameter(size, 1, **place) if affine else None)
        self.register_parameter("bias", new_parameter(size, 0, **place) if affine and bias else None)
        if track_running_stats:
            self.register_buffer("running_mean", filled(size, 0, **place))
            self.register_buffer("running_var", filled(size, 1, **place))
            self.register_buffer("num_batches_tracked", filled((), 0, dtypes.int64, device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._ranks:
            raise ShapeError(f"takes {' or '.join(map(str, self._ranks))} dimensions, not {input.ndim}")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        # The first version did not count batches.
        key = prefix + "num_batches_tracked"
        if local_metadata.get("version") in (None, 1) and self.track_running_stats and key not in state_dict:
            counted = self.num_batches_tracked
            state_dict[key] = filled((), 0, dtypes.int64) if counted is None else counted
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Normalisation by the statistics of the batch."""

    @in_layer
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        updates = self.training and self.track_running_stats
        if updates and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        if updates and self.momentum is None:
            return self._averaged(input)
        seen = updates or not self.training
        return F.batch_norm(
            input,
            self.running_mean if seen else None,
            self.running_var if seen else None,
            self.weight,
            self.bias,
            of_batch,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def _averaged(self, input: Tensor) -> Tensor:
        """Without a momentum the running statistics are the plain mean of those of all batches."""
        mean, var = (
            filled((self.num_features,), 0, statistic.dtype, statistic.device)
            for statistic in self._statistics()
        )
        result = F.batch_norm(input, mean, var, self.weight, self.bias, True, 1.0, self.eps)
        with no_grad():
            for running, of_batch in zip(self._statistics(), (mean, var), strict=True):
                running += (of_batch - running) / self.num_batches_tracked
        return result

    def _statistics(self) -> tuple[Tensor, Tensor]:
        return self.running_mean, self.running_var


class BatchNorm1d(_BatchNorm):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, by the statistics of each channel in the batch

    Input (N, C) or (N, C, L). In evaluation the running statistics replace the batch's.

        nn.BatchNorm1d(3)(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, by the statistics of each channel in the batch

    Input (N, C, H, W). In training, running_mean and running_var move towards the batch's statistics by
    `momentum`; if that is None, they are the averages over all batches. In evaluation they replace the
    batch's statistics.

        layer = nn.BatchNorm2d(3)
        layer(tn.ones(2, 3, 4, 4)).shape  # [2, 3, 4, 4]
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, by the statistics of each channel in the batch

    Input (N, C, D, H, W). In evaluation the running statistics replace the batch's.

        nn.BatchNorm3d(3)(tn.ones(2, 3, 4, 4, 4)).shape  # [2, 3, 4, 4, 4]
    """

    _ranks = (5,)


class _InstanceNorm(_NormBase):
    """Normalisation of each channel of each element of the batch, by its own statistics."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    @in_layer
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        unbatched = input.ndim == self._ranks[0]
        channels = input.shape[0 if unbatched else 1]
        if channels != self.num_features:
            if self.affine:
                raise ShapeError(f"takes {self.num_features} channels, not {channels}")
            warn(
                f"{type(self).__name__} of {self.num_features} channels is given {channels}; without affine "
                "it does not matter"
            )
        batch = input.unsqueeze(0) if unbatched else input
        result = F.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return result.squeeze(0) if unbatched else result


class InstanceNorm1d(_InstanceNorm):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, for each channel of each sequence

    Input and output (N, C, L) or (C, L).

        nn.InstanceNorm1d(3)(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, for each channel of each image

    Input and output (N, C, H, W) or (C, H, W).

        nn.InstanceNorm2d(3)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 8, 8]
    """

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, for each channel of each volume

    Input and output (N, C, D, H, W) or (C, D, H, W).

        nn.InstanceNorm3d(3)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 8, 8, 8]
    """

    _ranks = (4, 5)


class LayerNorm(Module):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, over the last dimensions, whose sizes are given

    Input and output (*, *normalized_shape), as weight and bias are without the *.

        nn.LayerNorm(10)(tn.ones(20, 5, 10)).shape  # [20, 5, 10]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = _extents(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        make = lambda value: new_parameter(self.normalized_shape, value, dtype, device)
        self.register_parameter("weight", make(1) if elementwise_affine else None)
        self.register_parameter("bias", make(0) if elementwise_affine and bias else None)

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """y = x / sqrt(mean(x²) + eps)·weight, over the last dimensions, whose sizes are given

    The default eps is the machine epsilon of the input's dtype.

        nn.RMSNorm(4)(tn.ones(2, 3, 4)).shape  # [2, 3, 4]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = _extents(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = new_parameter(self.normalized_shape, 1, dtype, device) if elementwise_affine else None
        self.register_parameter("weight", weight)

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


def _extents(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


class GroupNorm(Module):
    """y = (x - mean) / sqrt(var + eps)·weight + bias, over each of num_groups groups of channels

    Input and output (N, num_channels, *).

        nn.GroupNorm(3, 6)(tn.ones(20, 6, 10, 10)).shape  # [20, 6, 10, 10]
    """

    @in_layer
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentError(f"{num_channels} channels do not divide into {num_groups} groups")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        make = lambda value: new_parameter((num_channels,), value, dtype, device)
        self.register_parameter("weight", make(1) if affine else None)
        self.register_parameter("bias", make(0) if affine and bias else None)

    def reset_parameters(self) -> None:
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _AcrossChannels(Module):
    """What divides by the size of neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_AcrossChannels):
    """y = x / (k + alpha/size·Σ x²)^beta, where the sum is over `size` neighbouring channels

    Input and output (N, C, *).

        nn.LocalResponseNorm(2)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 8, 8]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_AcrossChannels):
    """The older LocalResponseNorm: for an even size the sum is over the `size - 1` channels around one

    Input and output (N, C, H, W).

        nn.CrossMapLRN2d(3)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 8, 8]
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ShapeError(f"takes images (N, C, H, W), not {tuple(input.shape)}")
        reach = (self.size - 1) // 2
        squares, channels = input * input, input.shape[1]
        padded = F.pad(squares, (0, 0, 0, 0, reach, reach))
        total = sum([padded[:, i : i + channels] for i in range(1, 2 * reach + 1)], padded[:, :channels])
        if channels > reach + 1:  # PyTorch's sum, which moves along, never lets go of the first channel
            first = squares[:, :1].expand(-1, channels - reach - 1, -1, -1)
            total = total + F.pad(first, (0, 0, 0, 0, reach + 1, 0))
        return input * (self.k + self.alpha / self.size * total) ** -self.beta
