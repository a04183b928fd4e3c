"""Rows that lay the patches of images out as columns, and add columns up to images again.

The two are each other's gradients.
"""

import itertools
import math

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.ops.placing import place
from tenfold.ops.samples import S, T
from tenfold.ops.spatial import each
from tenfold.ops.table import op


def _counts(shape, kernel, dilation, padding, stride):
    """How many patches there are along each dimension."""
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(shape, kernel, dilation, padding, stride, strict=True)
    ]
    if min(counts) < 1:
        raise ShapeError(f"patches of {list(kernel)} do not fit an image of {list(shape)}")
    return counts


def _settings(kernel, dilation, padding, stride):
    return (
        each(kernel, 2, "kernel_size", 1),
        each(dilation, 2, "dilation", 1),
        each(padding, 2, "padding", 0),
        each(stride, 2, "stride", 1),
    )


def _of_columns(cotangent, result, x, *settings):
    return (_image(cotangent, x.shape[2:], *settings),)


@flat.differentiated(_of_columns)
def _columns(x, kernel, dilation, padding, stride):
    """(N, C, H, W) as (N, C * taps, patches)."""
    batch, channels, *shape = x.shape
    counts = _counts(shape, kernel, dilation, padding, stride)
    edges = (0, 0, *padding)
    x = flat.pad(x, edges, edges)
    parts = []
    for tap in itertools.product(*map(range, kernel)):
        starts = [i * d for i, d in zip(tap, dilation, strict=True)]
        limits = [start + (n - 1) * s + 1 for start, n, s in zip(starts, counts, stride, strict=True)]
        part = flat.slice(x, (0, 0, *starts), (batch, channels, *limits), (1, 1, *stride))
        parts.append(flat.reshape(part, (batch, channels, 1, math.prod(counts))))
    return flat.reshape(flat.concatenate(parts, 2), (batch, channels * math.prod(kernel), math.prod(counts)))


def _of_image(cotangent, result, x, shape, *settings):
    return (_columns(cotangent, *settings),)


@flat.differentiated(_of_image)
def _image(x, shape, kernel, dilation, padding, stride):
    """(N, C * taps, patches) added up to (N, C, H, W)."""
    taps, counts = math.prod(kernel), _counts(shape, kernel, dilation, padding, stride)
    batch, channels = x.shape[0], x.shape[1] // taps
    padded = [n + 2 * p for n, p in zip(shape, padding, strict=True)]
    rows, columns = [
        (np.arange(k)[:, None] * d + np.arange(n) * s) * step
        for k, d, n, s, step in zip(kernel, dilation, counts, stride, (padded[1], 1), strict=True)
    ]
    # Where each tap of each patch lies in the padded image.
    places = flat.reshape(flat.constant(rows, dtypes.int32), (kernel[0], 1, counts[0], 1)) + flat.reshape(
        flat.constant(columns, dtypes.int32), (1, kernel[1], 1, counts[1])
    )
    each_image = (batch * channels, taps * math.prod(counts))
    places = flat.broadcast_to(flat.reshape(places, (1, -1)), each_image)
    wide = place(flat.reshape(x, each_image), places, each_image[:1], tuple(padded), "add")
    wide = flat.reshape(wide, (batch, channels, *padded))
    (top, left), (height, width) = padding, shape
    return flat.slice(wide, (0, 0, top, left), (batch, channels, top + height, left + width))


PLAIN = ((1, 1), (0, 0), (1, 1))  # dilation, padding, stride
FAR = ((2, 1), (1, 2), (2, 3))


@op(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    method=False,
    function=False,
    module="nn",
    samples=lambda: [
        S(T(2, 3, 5, 6), (2, 3), *PLAIN),
        S(T(3, 5, 6), (2, 3), *PLAIN),
        S(T(2, 3, 5, 6), (2, 3), *FAR),
        S(T(0, 3, 5, 6), (2, 3), *FAR),
        S(T(2, 3, 5, 6), (7, 3), *PLAIN),
    ],
    torch_dialect="columns_by_slices",
)
def im2col(x, kernel, dilation, padding, stride):
    """Each patch of the images as a column: (N, C, H, W) to (N, C * taps, patches)."""
    if x.rank not in (3, 4) or 0 in x.shape[x.rank - 3 :]:
        raise ShapeError(f"takes 3 or 4 dimensions, of which only the batch may be empty, not {x.type}")
    settings = _settings(kernel, dilation, padding, stride)
    if x.rank == 3:
        return flat.squeeze(_columns(flat.unsqueeze(x, 0), *settings), 0)
    return _columns(x, *settings)


@op(
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
    "int[2] stride) -> Tensor",
    method=False,
    function=False,
    module="nn",
    samples=lambda: [
        S(T(2, 18, 16), (5, 6), (2, 3), *PLAIN),
        S(T(18, 16), (5, 6), (2, 3), *PLAIN),
        S(T(2, 18, 9), (5, 6), (2, 3), *FAR),
        S(T(0, 18, 9), (5, 6), (2, 3), *FAR),
        S(T(2, 18, 9), (5, 6), (2, 3), *PLAIN),
    ],
)
def col2im(x, output_size, kernel, dilation, padding, stride):
    """Columns of patches added up to images: (N, C * taps, patches) to (N, C, H, W)."""
    shape, settings = each(output_size, 2, "output_size", 1), _settings(kernel, dilation, padding, stride)
    if x.rank not in (2, 3) or 0 in x.shape[x.rank - 2 :]:
        raise ShapeError(f"takes 2 or 3 dimensions, of which only the batch may be empty, not {x.type}")
    counts = _counts(shape, *settings)
    if x.shape[-2] % math.prod(settings[0]) or x.shape[-1] != math.prod(counts):
        raise ArgumentError(
            f"{x.type} are not columns of {math.prod(settings[0])} taps from {math.prod(counts)} patches"
        )
    if x.rank == 2:
        return flat.squeeze(_image(flat.unsqueeze(x, 0), shape, *settings), 0)
    return _image(x, shape, *settings)
