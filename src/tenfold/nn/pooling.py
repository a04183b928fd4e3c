"""Pooling: the maximum, the mean or a norm of each window, over one, two and three dimensions. Inputs are
(N, C, *extents) or (C, *extents)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.nn import functional as F
from tenfold.nn.module import Module, in_layer
from tenfold.nn.sizes import each_dimension
from tenfold.tensor import Tensor


class _MaxPool(Module):
    _rank: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"max_pool{self._rank}d")
        return pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation,
            ceil_mode=self.ceil_mode, return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The maximum of each window of a sequence; with return_indices also its position

    Input (N, C, L) or (C, L), output (N, C, Lout).

        nn.MaxPool1d(2)(tn.ones(2, 3, 8)).shape  # [2, 3, 4]
    """

    _rank = 1


class MaxPool2d(_MaxPool):
    """The maximum of each window of an image; with return_indices also where it was

    Each extent becomes floor((n + 2·padding - dilation·(kernel_size - 1) - 1) / stride + 1), with ceil_mode
    rounded up. The stride is the kernel_size if none is given.

        nn.MaxPool2d(2)(tn.ones(1, 3, 8, 8)).shape  # [1, 3, 4, 4]
    """

    _rank = 2


class MaxPool3d(_MaxPool):
    """The maximum of each window of a volume; with return_indices also its position

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout).

        nn.MaxPool3d(2)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 4, 4, 4]
    """

    _rank = 3


class _MaxUnpool(Module):
    _rank: int

    @in_layer
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        self.kernel_size = each_dimension(kernel_size, self._rank)
        self.stride = each_dimension(kernel_size if stride is None else stride, self._rank)
        self.padding = each_dimension(padding, self._rank)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        unpool = getattr(F, f"max_unpool{self._rank}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Puts maxima back where MaxPool1d found them, with zeros elsewhere

    Input and indices (N, C, L) as MaxPool1d returns them, output (N, C, Lout).

        pooled, where = nn.MaxPool1d(2, return_indices=True)(tn.ones(2, 3, 8))
        nn.MaxUnpool1d(2)(pooled, where).shape  # [2, 3, 8]
    """

    _rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Puts maxima back where MaxPool2d found them, with zeros elsewhere

    Input and indices (N, C, H, W) as MaxPool2d returns them, output (N, C, Hout, Wout).

        pooled, where = nn.MaxPool2d(2, return_indices=True)(tn.ones(2, 3, 8, 8))
        nn.MaxUnpool2d(2)(pooled, where).shape  # [2, 3, 8, 8]
    """

    _rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Puts maxima back where MaxPool3d found them, with zeros elsewhere

    Input and indices (N, C, D, H, W) as MaxPool3d returns them, output (N, C, Dout, Hout, Wout).

        pooled, where = nn.MaxPool3d(2, return_indices=True)(tn.ones(2, 3, 8, 8, 8))
        nn.MaxUnpool3d(2)(pooled, where).shape  # [2, 3, 8, 8, 8]
    """

    _rank = 3


class AvgPool1d(Module):
    """The mean of each window of a sequence; count_include_pad says whether padding counts

    Input (N, C, L) or (C, L), output (N, C, Lout). Each extent becomes floor((n + 2·padding - kernel_size) /
    stride + 1).

        nn.AvgPool1d(2)(tn.ones(2, 3, 8)).shape  # [2, 3, 4]
    """

    @in_layer
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__()
        self.kernel_size = each_dimension(kernel_size, 1)
        self.stride = each_dimension(kernel_size if stride is None else stride, 1)
        self.padding = each_dimension(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    _rank: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, f"avg_pool{self._rank}d")
        return pool(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of an image

    count_include_pad says whether padding counts; divisor_override divides by another number altogether.

        nn.AvgPool2d(2)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 4, 4]
    """

    _rank = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of a volume

    count_include_pad says whether padding counts; divisor_override divides by another number altogether.

        nn.AvgPool3d(2)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 4, 4, 4]
    """

    _rank = 3


class _FractionalMaxPool(Module):
    _rank: int

    @in_layer
    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        self.kernel_size = each_dimension(kernel_size, self._rank)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each_dimension(output_size, self._rank)
        self.output_ratio = None if output_ratio is None else each_dimension(output_ratio, self._rank)
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError("takes either output_size or output_ratio")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ArgumentError(f"output_ratio lies between 0 and 1, not {output_ratio}")

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"fractional_max_pool{self._rank}d")
        return pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maximum of each of output_size windows, placed at random over the image

    Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout), each extent given or a ratio of the input's.

        nn.FractionalMaxPool2d(2, output_size=5)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 5, 5]
    """

    _rank = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maximum of each of output_size windows, placed at random over the volume

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout), each extent given or a ratio of
    the input's.

        nn.FractionalMaxPool3d(2, output_size=5)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 5, 5, 5]
    """

    _rank = 3


class _LPPool(Module):
    _rank: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, f"lp_pool{self._rank}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of a sequence, where p is norm_type

    Input (N, C, L) or (C, L), output (N, C, Lout).

        nn.LPPool1d(2, 2)(tn.ones(2, 3, 8)).shape  # [2, 3, 4]
    """

    _rank = 1


class LPPool2d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of an image, where p is norm_type

    Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout).

        nn.LPPool2d(2, 2)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 4, 4]
    """

    _rank = 2


class LPPool3d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of a volume, where p is norm_type

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout).

        nn.LPPool3d(2, 2)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 4, 4, 4]
    """

    _rank = 3


class _AdaptiveAvgPool(Module):
    _rank: int

    def __init__(self, output_size: Any):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"adaptive_avg_pool{self._rank}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean of each window, where output_size windows together cover the sequence

    Input (N, C, L) or (C, L), output (N, C, output_size).

        nn.AdaptiveAvgPool1d(4)(tn.ones(2, 3, 8)).shape  # [2, 3, 4]
    """

    _rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The mean of each window, where output_size windows together cover the image; None keeps an extent

    Input (N, C, H, W) or (C, H, W), output (N, C, *output_size).

        nn.AdaptiveAvgPool2d((5, None))(tn.ones(1, 64, 8, 9)).shape  # [1, 64, 5, 9]
    """

    _rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The mean of each window, where output_size windows together cover the volume; None keeps an extent

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, *output_size).

        nn.AdaptiveAvgPool3d(4)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 4, 4, 4]
    """

    _rank = 3


class _AdaptiveMaxPool(Module):
    _rank: int

    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(F, f"adaptive_max_pool{self._rank}d")(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maximum of each window, where output_size windows together cover the sequence

    Input (N, C, L) or (C, L), output (N, C, output_size).

        nn.AdaptiveMaxPool1d(4)(tn.ones(2, 3, 8)).shape  # [2, 3, 4]
    """

    _rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maximum of each window, where output_size windows together cover the image; None keeps an extent

    Input (N, C, H, W) or (C, H, W), output (N, C, *output_size).

        nn.AdaptiveMaxPool2d(4)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 4, 4]
    """

    _rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maximum of each window, where output_size windows together cover the volume; None keeps an extent

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, *output_size).

        nn.AdaptiveMaxPool3d(4)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 4, 4, 4]
    """

    _rank = 3
