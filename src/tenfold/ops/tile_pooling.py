"""Max-pooling of images in half precision by kernels of our own, and its gradient: each reads what it needs
once. Channels lie nearest in memory, which is how the convolutions around them have images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import TensorType, Value
from tenfold.ops import tile_kernels
from tenfold.ops.tile_kernels import LIMIT, STRIP, call, kernel

if TYPE_CHECKING:
    from tenfold.ops.spatial import Pool

Ints = tuple[int, ...]
MOST_TAPS = 16  # of a window, each of which is written out
WARPS = 4


def _strip(k, width, channels):
    """Which row of a batch of images a program looks at; of which columns and channels; what is inside."""
    strips = -(-width * channels // STRIP)
    program = k.program()
    row = k.quotient(program, strips)
    places = k.range(STRIP) + (program - row * strips) * STRIP
    column = k.quotient(places, channels)
    return row, column, places - column * channels, places < width * channels


def _within(k, x, extent):
    return k.both(x > -1, x < extent)


@kernel
def largest_of_windows(k, x, best, places, *, image, counts, windows, stride, padding, channels):
    """The largest element of each window, and its place in the image. Of equal ones the first counts, of
    several NaNs the last."""
    (height, width), (rows, columns) = image, counts
    row, column, channel, inside = _strip(k, columns, channels)
    number = k.quotient(row, rows)
    top, left = (row - number * rows) * stride[0] - padding[0], column * stride[1] - padding[1]
    largest = k.full(float("-inf"), STRIP)
    first = k.where(top > -1, top, 0) * width
    place = k.where(left > -1, left, 0) + first
    for down in range(windows[0]):
        for along in range(windows[1]):
            y, x_at = top + down, left + along
            there = k.both(k.both(inside, _within(k, x_at, width)), _within(k, y, height))
            part = k.load(
                x, ((number * height + y) * width + x_at) * channels + channel, there, float("-inf")
            )
            at = x_at + y * width
            place = k.where(part == part, k.where(largest < part, at, place), at)
            largest = k.where(part == part, k.where(largest < part, part, largest), part)
    out = (row * columns + column) * channels + channel
    k.store(best, out, largest, inside)
    k.store(places, out, place, inside)


@kernel
def put_in_windows(k, cotangent, places, to_x, *, image, counts, windows, stride, padding, channels):
    """The cotangents of windows, each added where its largest element was."""
    (height, width), (rows, columns) = image, counts
    row, column, channel, inside = _strip(k, width, channels)
    number = k.quotient(row, height)
    line = row - number * height
    place, total = column + line * width, k.full(0.0, STRIP)
    for up in range(-(-windows[0] // stride[0])):
        y = k.quotient(line + padding[0], stride[0]) - up
        of_rows = k.both(_within(k, y, rows), line + padding[0] - y * stride[0] < windows[0])
        for back in range(-(-windows[1] // stride[1])):
            x_at = k.quotient(column + padding[1], stride[1]) - back
            reached = column + padding[1] - x_at * stride[1] < windows[1]
            there = k.both(k.both(inside, k.both(_within(k, x_at, columns), reached)), of_rows)
            at = ((number * rows + y) * columns + x_at) * channels + channel
            flow, chosen = k.load(cotangent, at, there), k.load(places, at, there, -1)
            total = total + k.where(chosen == place, flow, 0.0)
    k.store(to_x, (row * width + column) * channels + channel, total, inside)


def fits(shape: Ints, dtype: dtypes.DType, windows: Pool) -> bool:
    """Whether the kernels take images of this shape."""
    return (
        len(shape) == 4
        and len(windows.kernel) == 2
        and dtype in (dtypes.bfloat16, dtypes.float16)
        and tile_kernels.SMALLEST <= math.prod(shape) < LIMIT
        and shape[0] * shape[1] * math.prod(windows.counts) < LIMIT
        and max(windows.dilation) == 1
        and math.prod(windows.kernel) <= MOST_TAPS
    )


def _options(image: Ints, channels: int, windows: Pool) -> dict[str, Any]:
    return {
        "image": image, "counts": tuple(windows.counts), "windows": tuple(windows.kernel),
        "stride": tuple(windows.stride), "padding": tuple(windows.padding), "channels": channels,
    }  # fmt: skip


def call_largest(x: Value, windows: Pool) -> tuple[Value, Value]:
    """The largest elements of the windows of x[N, C, H, W], and their places."""
    batch, channels, *image = x.shape
    rows, columns = windows.counts
    shape = (batch, rows, columns, channels)
    grid = batch * rows * -(-columns * channels // STRIP)
    results = [TensorType(x.dtype, shape), TensorType(dtypes.int32, shape)]
    options = _options(tuple(image), channels, windows)
    best, places = call(largest_of_windows, [_near(x)], results, grid, WARPS, **options)
    return _far(best), _far(places)


def call_put(cotangent: Value, places: Value, image: Ints, windows: Pool) -> Value:
    """The cotangents of the windows of an image, each at its place."""
    batch, channels = cotangent.shape[:2]
    height, width = image
    grid = batch * height * -(-width * channels // STRIP)
    inputs = [_near(cotangent), _near(flat.convert(places, dtypes.int32))]
    results = [TensorType(cotangent.dtype, (batch, height, width, channels))]
    (found,) = call(put_in_windows, inputs, results, grid, WARPS, **_options(image, channels, windows))
    return _far(found)


def _near(x: Value) -> Value:
    return flat.transpose(x, (0, 2, 3, 1))


def _far(x: Value) -> Value:
    return flat.transpose(x, (0, 3, 1, 2))
