"""Convolutions and their transposes, over one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.nn import functional as F, init
from tenfold.nn.module import Module, in_layer
from tenfold.nn.parameter import Parameter, new_parameter
from tenfold.nn.sizes import each_dimension
from tenfold.tensor import Tensor

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions have: their sizes, and weights that start evenly spread over ±1/sqrt(fan_in)."""

    _rank: int
    _transposed = False

    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Any
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Parameter
    bias: Parameter | None

    def _set_up(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        Module.__init__(self)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = each_dimension(kernel_size, self._rank)
        self.stride = each_dimension(stride, self._rank)
        self.padding = padding if isinstance(padding, str) else each_dimension(padding, self._rank)
        self.dilation = each_dimension(dilation, self._rank)
        self.transposed = self._transposed
        self.output_padding = each_dimension(output_padding, self._rank)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        self.weight = new_parameter((first, second // groups, *self.kernel_size), 0, dtype, device)
        if bias:
            self.bias = new_parameter((out_channels,), 0, dtype, device)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(self) -> None:
        if self.groups <= 0:
            raise ArgumentError(f"the number of groups is positive, not {self.groups}")
        for name, channels in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if channels % self.groups:
                raise ArgumentError(f"{name} {channels} do not divide into {self.groups} groups")
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ArgumentError(f"no padding {self.padding!r}", help="numbers, 'same' or 'valid'")
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ArgumentError("padding='same' is for a stride of 1 only")
        if self.padding_mode not in _PADDING_MODES:
            raise ArgumentError(
                f"no padding mode {self.padding_mode!r}", help=f"one of {', '.join(_PADDING_MODES)}"
            )

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        ]
        if isinstance(self.padding, str) or any(self.padding):
            parts.append(f"padding={self.padding}")
        if any(each != 1 for each in self.dilation):
            parts.append(f"dilation={self.dilation}")
        if any(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Forward(_ConvNd):
    @in_layer
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with other weights than its own, by which layers derived from it call it."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._pads(), mode=self.padding_mode), (0,) * self._rank
        convolve = getattr(F, f"conv{self._rank}d")
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def _pads(self) -> list[int]:
        """How much F.pad adds: before and after each dimension, from the last to the first."""
        pads = []
        for i in reversed(range(self._rank)):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                pads += [total // 2, total - total // 2]
            else:
                pads += [0, 0] if self.padding == "valid" else [self.padding[i]] * 2
        return pads


class Conv1d(_Forward):
    """out = bias + weight ⋆ input: a window of weights moved along sequences

    Input (N, in_channels, L) or (in_channels, L), output (N, out_channels, Lout) with
    Lout = floor((L + 2·padding - dilation·(kernel_size - 1) - 1) / stride + 1).

        nn.Conv1d(16, 33, 3, stride=2)(tn.ones(20, 16, 50)).shape  # [20, 33, 24]
    """

    _rank = 1


class Conv2d(_Forward):
    """out = bias + weight ⋆ input: a window of weights moved over images

    Input (N, in_channels, H, W) or (in_channels, H, W), output (N, out_channels, Hout, Wout), each extent
    floor((n + 2·padding - dilation·(kernel_size - 1) - 1) / stride + 1). `weight` is (out_channels,
    in_channels / groups, *kernel_size). padding="same" keeps the extents; padding_mode says what
    fills the border.

        nn.Conv2d(3, 8, 3, padding=1)(tn.ones(2, 3, 32, 32)).shape  # [2, 8, 32, 32]
    """

    _rank = 2


class Conv3d(_Forward):
    """out = bias + weight ⋆ input: a window of weights moved through volumes

    Input (N, in_channels, D, H, W) or (in_channels, D, H, W), output (N, out_channels, Dout, Hout, Wout),
    each extent floor((n + 2·padding - dilation·(kernel_size - 1) - 1) / stride + 1).

        nn.Conv3d(3, 4, 3, padding=1)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 4, 8, 8, 8]
    """

    _rank = 3


class _ConvTransposeNd(_ConvNd):
    _transposed = True

    @in_layer
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        if padding_mode != "zeros":
            raise ArgumentError(f"a transposed convolution pads with zeros only, not {padding_mode!r}")
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    @in_layer
    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        convolve = getattr(F, f"conv_transpose{self._rank}d")
        return convolve(
            input, self.weight, self.bias, self.stride, self.padding,
            self._output_padding(input, output_size), self.groups, self.dilation,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What to add at the end so that the output has the size asked for."""
        if output_size is None:
            return self.output_padding
        extents = tuple(input.shape)[-self._rank :]
        leading = input.ndim - self._rank
        wanted = tuple(output_size)
        if len(wanted) == leading + self._rank:
            wanted = wanted[leading:]
        if len(wanted) != self._rank:
            raise ShapeError(
                f"an output_size of {self._rank} or {input.ndim} numbers is needed, not {wanted}"
            )
        least = [
            (extent - 1) * step - 2 * pad + dilation * (kernel - 1) + 1
            for extent, step, pad, dilation, kernel in zip(
                extents, self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        most = [size + step - 1 for size, step in zip(least, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(least, wanted, most, strict=True)):
            raise ShapeError(f"an output_size from {least} to {most} is possible here, not {list(wanted)}")
        return tuple([size - low for size, low in zip(wanted, least, strict=True)])


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution along sequences: the gradient of `Conv1d` with respect to its input

    Input (N, in_channels, L) or (in_channels, L), output (N, out_channels, Lout) with
    Lout = (L - 1)·stride - 2·padding + dilation·(kernel_size - 1) + output_padding + 1.

        nn.ConvTranspose1d(3, 4, 2, stride=2)(tn.ones(2, 3, 8)).shape  # [2, 4, 16]
    """

    _rank = 1


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over images: the gradient of `Conv2d` with respect to its input

    Input (N, in_channels, H, W) or (in_channels, H, W), output (N, out_channels, Hout, Wout), each extent
    (n - 1)·stride - 2·padding + dilation·(kernel_size - 1) + output_padding + 1. `weight` is (in_channels,
    out_channels / groups, *kernel_size).

        nn.ConvTranspose2d(8, 3, 2, stride=2)(tn.ones(2, 8, 16, 16)).shape  # [2, 3, 32, 32]
    """

    _rank = 2


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution through volumes: the gradient of `Conv3d` with respect to its input

    Input (N, in_channels, D, H, W) or (in_channels, D, H, W), output (N, out_channels, Dout, Hout, Wout),
    each extent (n - 1)·stride - 2·padding + dilation·(kernel_size - 1) + output_padding + 1.

        nn.ConvTranspose3d(3, 4, 2, stride=2)(tn.ones(2, 3, 4, 4, 4)).shape  # [2, 4, 8, 8, 8]
    """

    _rank = 3
