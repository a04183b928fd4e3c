"""Convolution as three sums of products that are each other's gradients: forward, input's, weight's.

Each is linear in both operands, so the three differentiate into one another to any order. How a sum is
computed follows what XLA's CPU runs fastest: its own convolution where that is vectorised, elsewhere one
product for each tap of the kernel. The rows are in `convolution.py`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import Value
from tenfold.ops import strided_folding

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

# Dtypes whose convolutions XLA vectorises on the CPU; others run as one matrix product for each tap.
DIRECT = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
# A kernel with more taps is not unrolled: compiling would take longer than it saves.
MOST_TAPS = 64
# With no more, a loop over the taps costs more than to compile each by itself.
FEW_TAPS = 2
# XLA runs groups one by one, slowly: that many become convolutions of their own.
MOST_SPLITS = 16


class Window(NamedTuple):
    """How a kernel slides: `spread` puts zeros between the input's elements."""

    strides: Ints
    padding: Pairs
    dilation: Ints
    groups: int
    spread: Ints


def extents(shape: Ints, kernel: Ints, window: Window) -> Ints:
    """How many places the kernel takes along each spatial dimension."""
    found = []
    for n, k, s, (low, high), d, e in zip(
        shape, kernel, window.strides, window.padding, window.dilation, window.spread, strict=True
    ):
        room = (max(n - 1, 0) * e + min(n, 1)) + low + high - ((k - 1) * d + 1)
        found.append(room // s + 1)
    return tuple(found)


def fitted(window: Window, shape: Ints, kernel: Ints, counts: Ints) -> Window:
    """The window that takes exactly `counts` places: the end of the input is padded or cut to that.

    Where strides leave some of the end over, several extents of the input give the same count of places.
    """
    padding = []
    for n, k, count, s, (low, _), d in zip(
        shape, kernel, counts, window.strides, window.padding, window.dilation, strict=True
    ):
        padding.append((low, (count - 1) * s + (k - 1) * d + 1 - n - low))
    return window._replace(padding=tuple(padding))


def _of_correlate(cotangent, result, x, kernel, window):
    return (
        spread(cotangent, flat.conj(kernel), window, x.shape[2:]),
        weigh(flat.conj(x), cotangent, window, kernel.shape[2:]),
    )


def _correlate_on_cuda(x, kernel, window):
    if not strided_folding.fits(x, window):
        return slide(x, kernel, window)
    shape = kernel.shape[2:]
    counts = extents(x.shape[2:], shape, window)
    image = strided_folding.folded_image(x, shape, counts, window)
    return slide(image, strided_folding.folded_kernel(kernel, window), strided_folding.folded(window))


@flat.differentiated(_of_correlate, elsewhere={"cuda": _correlate_on_cuda})
def correlate(x, kernel, window):
    """Sums of products of kernel[O, C/groups, ...] with the windows of x[N, C, ...]."""
    return slide(x, kernel, window)


def _of_spread(cotangent, result, x, kernel, window, shape):
    exact = fitted(window, shape, kernel.shape[2:], x.shape[2:])
    return (
        correlate(cotangent, flat.conj(kernel), exact),
        weigh(cotangent, flat.conj(x), window, kernel.shape[2:]),
    )


@flat.differentiated(_of_spread)
def spread(x, kernel, window, shape):
    """The gradient of `correlate` in its input of this spatial shape: x[N, O, ...] spread by the kernel."""
    padding = []
    for n, p, k, s, (low, _), d in zip(
        shape, x.shape[2:], kernel.shape[2:], window.strides, window.padding, window.dilation, strict=True
    ):
        before = (k - 1) * d - low
        padding.append((before, n + (k - 1) * d - before - ((p - 1) * s + 1 if p else 0)))
    ones = (1,) * len(shape)
    back = Window(ones, tuple(padding), window.dilation, window.groups, window.strides)
    return slide(x, _turned(kernel, window.groups), back)


def _of_weigh(cotangent, result, x, y, window, shape):
    exact = fitted(window, x.shape[2:], shape, y.shape[2:])
    return (
        spread(flat.conj(y), cotangent, window, x.shape[2:]),
        correlate(flat.conj(x), cotangent, exact),
    )


def _weigh_unrolled(x, y, window, shape):
    """`weigh` for GPUs, which would wait for the processor at every round of a loop."""
    if y.numel and strided_folding.fits(x, window):
        image = strided_folding.folded_image(x, shape, y.shape[2:], window)
        taps, plain = strided_folding.folded_taps(shape, window), strided_folding.folded(window)
        found = _weighed(image, y, plain, taps, _unrolled)
        return strided_folding.unfolded_kernel(found, x.shape[1], shape, window)
    return _weighed(x, y, window, shape, _unrolled)


@flat.differentiated(_of_weigh, elsewhere={"cuda": _weigh_unrolled})
def weigh(x, y, window, shape):
    """The gradient of `correlate` in its kernel of this spatial shape: windows of x[N, C] times y[N, O]."""
    return _weighed(x, y, window, shape, _looped if math.prod(shape) > FEW_TAPS else _unrolled)


def _weighed(x, y, window, shape, tap_by_tap):
    groups, rank = window.groups, x.rank
    per, out = x.shape[1] // groups, y.shape[1]
    if not x.numel or not y.numel:
        return flat.full((out, per, *shape), 0, x.dtype)
    if x.dtype not in DIRECT or groups > MOST_SPLITS:
        x = _padded(x, window.padding, (1,) * len(shape))
        stacked = tap_by_tap(_grouped(x, groups), _grouped(y, groups), window, shape)
        return flat.reshape(stacked, (out, per, *shape))
    places = tuple(range(2, rank))
    numbers = flat.ConvDimensions(1, 0, places, 0, 1, places, 1, 0, places)
    parts = [
        flat.convolution(
            flat.slice_dim(x, 1, g * per, (g + 1) * per),
            flat.slice_dim(y, 1, g * out // groups, (g + 1) * out // groups),
            numbers,
            strides=window.dilation,
            padding=fitted(window, x.shape[2:], shape, y.shape[2:]).padding,
            kernel_dilation=window.strides,
        )
        for g in range(groups)
    ]
    return flat.concatenate(parts, 0)


def _tap_product(x: Value, y: Value) -> Value:
    """Of grouped x[N, G, C] and y[N, G, O], what a tap weighs: products [G, O, C], summed over the rest. For
    one channel in each group XLA's products of matrices are slower than a sum."""
    over = (0, *range(3, x.rank))
    if x.shape[2] == y.shape[2] == 1 and x.dtype.itemsize >= 4:
        return flat.unsqueeze(flat.reduce(y * x, "add", over), 2)
    return flat.dot_general(y, x, (over, over), ((1,), (1,)))


def _unrolled(x: Value, y: Value, window: Window, shape: Ints) -> Value:
    """The products of all taps, [G, O, C, taps], each by ops of its own."""
    taps = _taps(x, shape, y.shape[3:], window.strides, window.dilation)
    return flat.concatenate([flat.unsqueeze(_tap_product(part, y), 3) for part in taps], 3)


def _looped(x: Value, y: Value, window: Window, shape: Ints) -> Value:
    """The same by a loop, which compiles in the time of one tap."""
    counts, strides = y.shape[3:], window.strides
    reach = [(n - 1) * s + 1 for n, s in zip(counts, strides, strict=True)]
    taps = np.array(list(itertools.product(*map(range, shape)))) * np.array(window.dilation)
    sums = flat.full((len(taps), *y.shape[1:3], x.shape[2]), 0, x.dtype)

    def one_tap(i, sums, x, y, starts):
        place = flat.read_at(starts, i)
        at = [flat.reshape(flat.slice_dim(place, 0, d, d + 1), ()) for d in range(len(shape))]
        part = flat.dynamic_slice(x, [0, 0, 0, *at], (*x.shape[:3], *reach))
        part = flat.slice(part, (0,) * x.rank, part.shape, (1, 1, 1, *strides))
        return i + 1, flat.written_at(sums, _tap_product(part, y), i), x, y, starts

    carry = (flat.full((), 0, dtypes.int32), sums, x, y, flat.constant(taps, dtypes.int32))
    found = flat.while_loop(lambda i, *_: i < len(taps), one_tap, carry)[1]
    return flat.transpose(found, (1, 2, 3, 0))


# Forms


def slide(x: Value, kernel: Value, window: Window) -> Value:
    """The sums of products themselves, by the form that suits the shapes."""
    per, taps = kernel.shape[1], math.prod(kernel.shape[2:])
    counts = extents(x.shape[2:], kernel.shape[2:], window)
    if not x.numel or not kernel.numel or 0 in counts:
        return flat.full((x.shape[0], kernel.shape[0], *counts), 0, x.dtype)
    if taps <= MOST_TAPS:
        if per == 1 and x.dtype.itemsize >= 4:
            return _elementwise(x, kernel, window, counts)
        if x.dtype not in DIRECT or (window.groups > MOST_SPLITS and x.dtype.itemsize >= 4):
            return _tap_by_tap(x, kernel, window, counts)
    if window.groups > MOST_SPLITS:
        return _direct(x, kernel, window, window.groups)
    out = kernel.shape[0] // window.groups
    parts = [
        _direct(
            flat.slice_dim(x, 1, g * per, (g + 1) * per),
            flat.slice_dim(kernel, 0, g * out, (g + 1) * out),
            window,
            1,
        )
        for g in range(window.groups)
    ]
    return flat.concatenate(parts, 1)


def _direct(x: Value, kernel: Value, window: Window, groups: int) -> Value:
    places = tuple(range(2, x.rank))
    return flat.convolution(
        x,
        kernel,
        flat.ConvDimensions(0, 1, places, 1, 0, places, 0, 1, places),
        strides=window.strides,
        padding=window.padding,
        x_dilation=window.spread,
        kernel_dilation=window.dilation,
        groups=groups,
    )


def _elementwise(x: Value, kernel: Value, window: Window, counts: Ints) -> Value:
    """One input channel for each output channel: shifted copies of x, scaled and added, in one fusion."""
    batch, groups = x.shape[0], window.groups
    each = kernel.shape[0] // groups
    x = _grouped(_padded(x, window.padding, window.spread), groups)
    scales = flat.reshape(kernel, (1, groups, each, -1))
    products = []
    for tap, part in enumerate(_taps(x, kernel.shape[2:], counts, window.strides, window.dilation)):
        scale = flat.slice_dim(scales, 3, tap, tap + 1)
        products.append(part * flat.reshape(scale, (1, groups, each, *(1 for _ in counts))))
    return flat.reshape(functools.reduce(flat.add, products), (batch, kernel.shape[0], *counts))


def _tap_by_tap(x: Value, kernel: Value, window: Window, counts: Ints) -> Value:
    """One product of matrices for each tap of the kernel and group of channels."""
    batch, groups, rank = x.shape[0], window.groups, x.rank
    per, out = kernel.shape[1], kernel.shape[0]
    x = _grouped(_padded(x, window.padding, window.spread), groups)
    weights = flat.reshape(kernel, (groups, out // groups, per, -1))
    products = []
    for tap, part in enumerate(_taps(x, kernel.shape[2:], counts, window.strides, window.dilation)):
        weight = flat.squeeze(flat.slice_dim(weights, 3, tap, tap + 1), 3)
        products.append(flat.dot_general(weight, part, ((2,), (2,)), ((0,), (1,))))
    # groups, channels, batch, places -> batch, groups, channels, places
    result = flat.transpose(functools.reduce(flat.add, products), (2, 0, 1, *range(3, rank + 1)))
    return flat.reshape(result, (batch, out, *counts))


def _taps(x: Value, kernel: Ints, counts: Ints, strides: Ints, dilation: Ints) -> Iterator[Value]:
    """For each tap of the kernel, row by row, the elements of x that it meets; x is padded already."""
    lead = x.rank - len(kernel)
    for tap in itertools.product(*map(range, kernel)):
        starts = [i * d for i, d in zip(tap, dilation, strict=True)]
        limits = [start + (n - 1) * s + 1 for start, n, s in zip(starts, counts, strides, strict=True)]
        yield flat.slice(
            x, (*(0 for _ in range(lead)), *starts), (*x.shape[:lead], *limits), (*(1,) * lead, *strides)
        )


def _padded(x: Value, padding: Pairs, spread: Ints) -> Value:
    if not any(map(any, padding)) and max(spread, default=1) == 1:
        return x
    lead = (0,) * (x.rank - len(padding))
    return flat.pad(
        x,
        (*lead, *[low for low, _ in padding]),
        (*lead, *[high for _, high in padding]),
        0,
        (*lead, *[each - 1 for each in spread]),
    )


def _grouped(x: Value, groups: int) -> Value:
    """x[N, C, ...] as x[N, groups, C / groups, ...]."""
    return flat.reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))


def _turned(kernel: Value, groups: int) -> Value:
    """The kernel that goes back: its taps in reverse order, its inputs and outputs exchanged."""
    out, per, *taps = kernel.shape
    split = flat.swap(flat.reshape(kernel, (groups, out // groups, per, *taps)), 1, 2)
    turned = flat.reshape(split, (groups * per, out // groups, *taps))
    return flat.reverse(turned, tuple(range(2, kernel.rank)))
