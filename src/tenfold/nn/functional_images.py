"""Functions of `tenfold.nn.functional` that resample images or split them into patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError, located
from tenfold.base.warning import warn
from tenfold.nn.sizes import each_dimension
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "affine_grid",
    "fold",
    "grid_sample",
    "interpolate",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

# The rows of each mode, by how many dimensions the images have; only those with a name take align_corners.
ROWS = {
    ("nearest", 1): "upsample_nearest1d",
    ("nearest", 2): "upsample_nearest2d",
    ("nearest", 3): "upsample_nearest3d",
    ("nearest-exact", 1): "_upsample_nearest_exact1d",
    ("nearest-exact", 2): "_upsample_nearest_exact2d",
    ("nearest-exact", 3): "_upsample_nearest_exact3d",
    ("area", 1): "adaptive_avg_pool1d",
    ("area", 2): "adaptive_avg_pool2d",
    ("area", 3): "adaptive_avg_pool3d",
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
    ("lanczos", 2): "",
}
SMOOTH = {"bilinear", "bicubic", "lanczos"}
UNALIGNED = ("nearest", "area", "nearest-exact")


def _extent(size: Any) -> int:
    """A size that was given, which is a whole number or a tensor of one."""
    if isinstance(size, (bool, float)) or (isinstance(size, Tensor) and size.is_floating_point()):
        raise ArgumentError(f"a size is an int, not {size!r}", help="scale_factor takes floats")
    return int(size)


@located
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resamples images to a size, or by a factor

    `mode` is nearest, nearest-exact, area, linear, bilinear, trilinear, bicubic or lanczos.

    Input (N, C, *extents), output (N, C, *size) or scaled by scale_factor.

        F.interpolate(tn.ones(1, 3, 4, 4), scale_factor=2).shape  # [1, 3, 8, 8]
    """
    if mode in UNALIGNED and align_corners is not None:
        raise ArgumentError(f"align_corners is not for mode {mode!r}", help="it is for linear and cubic ones")
    dims = input.ndim - 2
    if (mode, dims) not in ROWS:
        fitting = [known for known, d in ROWS if d == dims]
        raise UnsupportedError(
            f"mode {mode!r} does not take {input.ndim} dimensions",
            help=f"use {', '.join(fitting)}"
            if fitting
            else "images have one to three, after batch, channels",
        )
    if (size is None) == (scale_factor is None):
        raise ArgumentError("give either size or scale_factor")
    if size is not None:
        extents, factors = [_extent(each) for each in each_dimension(size, dims)], None
        if recompute_scale_factor:
            raise ArgumentError("recompute_scale_factor has no meaning with a size")
    else:
        extents, factors = None, [float(each) for each in each_dimension(scale_factor, dims)]
        if recompute_scale_factor or mode == "area":
            extents = [int(n * factor) for n, factor in zip(input.shape[2:], factors, strict=True)]
            factors = None
    if antialias and (mode not in SMOOTH or dims != 2):
        raise ArgumentError("antialias is for bilinear, bicubic and lanczos modes of four dimensions")
    if mode == "lanczos" and (not antialias or align_corners):
        raise ArgumentError("mode 'lanczos' is with antialias=True and without align_corners")
    if mode == "area":
        return aten(ROWS[mode, dims])(input, extents)
    if mode in UNALIGNED:
        return aten(ROWS[mode, dims])(input, extents, factors)
    name = f"_upsample_{mode}2d_aa" if antialias else ROWS[mode, dims]
    return aten(name)(input, extents, bool(align_corners), factors)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resamples images: the old name of `interpolate`

    F.upsample(tn.ones(1, 3, 4, 4), scale_factor=2).shape  # [1, 3, 8, 8]
    """
    warn("upsample is deprecated: use interpolate")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resamples images by the nearest element: an old name for `interpolate`

    F.upsample_nearest(tn.ones(1, 3, 4, 4), scale_factor=2).shape  # [1, 3, 8, 8]
    """
    warn("upsample_nearest is deprecated: use interpolate")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resamples images bilinearly, with the corners aligned: an old name for `interpolate`

    F.upsample_bilinear(tn.ones(1, 3, 4, 4), scale_factor=2).shape  # [1, 3, 8, 8]
    """
    warn("upsample_bilinear is deprecated: use interpolate")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


MODES = ("bilinear", "nearest", "bicubic")
PADDING = ("zeros", "border", "reflection")


@located
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Samples images at the positions in a grid, whose coordinates go from -1 to 1

    Input (N, C, H, W) and grid (N, Hout, Wout, 2), output (N, C, Hout, Wout); or volumes.

        F.grid_sample(tn.ones(1, 3, 4, 4), tn.zeros(1, 2, 2, 2), align_corners=False).shape  # [1, 3, 2, 2]
    """
    if mode not in MODES:
        raise ArgumentError(f"no mode {mode!r}", help=f"use {', '.join(MODES)}")
    if padding_mode not in PADDING:
        raise ArgumentError(f"no padding_mode {padding_mode!r}", help=f"use {', '.join(PADDING)}")
    if align_corners is None:
        warn("grid_sample takes align_corners=False unless told")
    places = MODES.index(mode), PADDING.index(padding_mode)
    return aten("grid_sampler")(input, grid, *places, bool(align_corners))


@located
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Returns the grid of `grid_sample` that transforms images of this size by affine maps

    theta (N, 2, 3) and size (N, C, H, W), output (N, H, W, 2); or (N, 3, 4) for volumes.

        F.affine_grid(tn.eye(2, 3).unsqueeze(0), (1, 3, 4, 4)).shape  # [1, 4, 4, 2]
    """
    if align_corners is None:
        warn("affine_grid takes align_corners=False unless told")
    if not theta.dtype.is_floating_point:
        raise DTypeError(f"the maps must be floats, not {theta.dtype.name}")
    dims = len(size) - 2
    if dims not in (2, 3) or theta.ndim != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ShapeError(
            f"maps of shape {list(theta.shape)} do not fit images of size {list(size)}",
            help="they are (N, 2, 3) for (N, C, H, W), (N, 3, 4) for (N, C, D, H, W)",
        )
    if min(size) <= 0:
        raise ShapeError(f"the size {list(size)} must be positive")
    return aten("affine_grid_generator")(theta, size, bool(align_corners))


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Makes each patch of the images a column

    Input (N, C, H, W), output (N, C·∏kernel_size, patches).

        F.unfold(tn.ones(1, 3, 4, 4), 2, stride=2).shape  # [1, 12, 4]
    """
    return aten("im2col")(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Sums overlapping patches, given as columns, into images

    Input (N, C·∏kernel_size, patches), output (N, C, *output_size).

        F.fold(tn.ones(1, 12, 4), (4, 4), 2, stride=2).shape  # [1, 3, 4, 4]
    """
    return aten("col2im")(input, output_size, kernel_size, dilation, padding, stride)
