"""Layers that move elements: between channels and space, into other shapes, into and out of patches, onto
finer grids."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.nn import functional as F
from tenfold.nn.module import Module, in_layer
from tenfold.tensor import Tensor


class PixelShuffle(Module):
    """(*, C·r², H, W) to (*, C, H·r, W·r), r being upscale_factor

    nn.PixelShuffle(3)(tn.ones(1, 9, 4, 4)).shape  # [1, 1, 12, 12]
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Moves each r by r block of pixels into channels, where r is downscale_factor

    Input (*, C, H·r, W·r), output (*, C·r², H, W).

        nn.PixelUnshuffle(2)(tn.ones(1, 1, 4, 4)).shape  # [1, 4, 2, 2]
    """

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleaves groups of channels: the first channel of each group, then the second of each

    Input and output (N, C, *).

        nn.ChannelShuffle(2)(tn.arange(4.0).reshape(1, 4, 1)).flatten()  # [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Flatten(Module):
    """Flattens the dimensions from start_dim to end_dim into one

    nn.Flatten()(tn.ones(32, 1, 5, 5)).shape  # [32, 25]
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several; one of their sizes may be -1

    nn.Unflatten(1, (2, 5, 5))(tn.ones(32, 50)).shape  # [32, 2, 5, 5]
    """

    @in_layer
    def __init__(self, dim: int, unflattened_size: Any):
        super().__init__()
        if not isinstance(dim, int):
            raise ArgumentError(
                f"dim is an int, not {type(dim).__name__}", help="dimensions have numbers here, no names"
            )
        sizes = tuple(unflattened_size) if isinstance(unflattened_size, (tuple, list)) else None
        if sizes is None or not all(isinstance(size, int) for size in sizes):
            raise ArgumentError(f"unflattened_size is a tuple of ints, not {unflattened_size!r}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Fold(Module):
    """Sums overlapping patches into images, the reverse of Unfold

    Input (N, C·∏kernel_size, L), output (N, C, *output_size).

        nn.Fold((4, 4), 2, stride=2)(tn.ones(1, 12, 4)).shape  # [1, 3, 4, 4]
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ):
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Takes images apart into patches

    Input (N, C, H, W), output (N, C·∏kernel_size, L) with one column for each of L patches.

        nn.Unfold(2, stride=2)(tn.ones(1, 3, 4, 4)).shape  # [1, 12, 4]
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Upsample(Module):
    """Resamples (N, C, *extents) to a size, or by a factor

    mode is nearest, linear (for one dimension), bilinear, bicubic (two) or trilinear (three).

        nn.Upsample(scale_factor=2)(tn.ones(1, 1, 2, 2)).shape  # [1, 1, 4, 4]
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple([float(each) for each in scale_factor])
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        target = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsamples images by repeating the nearest pixel

    Input (N, C, H, W), output (N, C, *size) or scaled by scale_factor.

        nn.UpsamplingNearest2d(scale_factor=2)(tn.ones(1, 3, 4, 4)).shape  # [1, 3, 8, 8]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsamples images bilinearly, with the corners aligned

    Input (N, C, H, W), output (N, C, *size) or scaled by scale_factor.

        nn.UpsamplingBilinear2d(scale_factor=2)(tn.ones(1, 3, 4, 4)).shape  # [1, 3, 8, 8]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
