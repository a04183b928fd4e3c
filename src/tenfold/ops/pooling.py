"""Average-pool rows, fixed and adaptive, and their gradients.

A pool is a sum over ranges of each dimension in turn, divided by how many elements it covers. The sum that
carries a gradient back is one over ranges too.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DivisionByZero, DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.ops.max_pooling import bounds
from tenfold.ops.precision import widened
from tenfold.ops.samples import S, T
from tenfold.ops.spatial import Ints, each, image, pool, spatial
from tenfold.ops.table import op

# Longer windows are folded by reduce_window: slices of each element would take long to compile.
MOST_SLICES = 16


def _of_range_sums(cotangent, result, x, dim, starts, ends):
    return (range_sums(cotangent, dim, *covering(starts, ends, x.shape[dim])),)


@flat.differentiated(_of_range_sums)
def range_sums(x, dim, starts, ends):
    """The sum of x over each of the ranges start:end of a dimension, which may overlap and overhang."""
    length = max(end - start for start, end in zip(starts, ends, strict=True))
    steps = {after - before for before, after in itertools.pairwise(starts)} or {1}
    even = len(steps) == 1 and all(end - start == length for start, end in zip(starts, ends, strict=True))
    if even and min(steps) > 0:
        return _strided(x, dim, starts[0], len(starts), length, min(steps))
    rows = np.array(starts)[:, None] + np.arange(length)
    inside = (rows < np.array(ends)[:, None]) & (rows >= 0) & (rows < x.shape[dim])
    taken = flat.take(x, flat.constant(np.where(inside, rows, 0), dtypes.int32), dim)
    if not inside.all():
        mask = flat.constant(inside, dtypes.bool_)
        taken = flat.where(flat.reshape(mask, (*inside.shape, *(1 for _ in x.shape[dim + 1 :]))), taken, 0)
    return flat.sum(taken, (dim + 1,)) if length > 1 else flat.squeeze(taken, dim + 1)


def _strided(x: Value, dim: int, start: int, count: int, length: int, stride: int) -> Value:
    """Sums over ranges of one length at even distances."""
    low = max(-start, 0)
    high = max(start + (count - 1) * stride + length - x.shape[dim], low)  # at least as at the start
    if low or high:
        lows, highs = [0] * x.rank, [0] * x.rank
        lows[dim], highs[dim] = low, high
        x = flat.pad(x, lows, highs)
    first = max(start, 0)
    if stride == length:
        x = flat.slice_dim(x, dim, first, first + count * length)
        return flat.sum(flat.reshape(x, (*x.shape[:dim], count, length, *x.shape[dim + 1 :])), (dim + 1,))
    if length > MOST_SLICES:
        window, strides = [1] * x.rank, [1] * x.rank
        window[dim], strides[dim] = length, stride
        x = flat.slice_dim(x, dim, first, first + (count - 1) * stride + length)
        return flat.reduce_window(x, "add", window, strides)
    parts = [
        flat.slice_dim(x, dim, i, i + (count - 1) * stride + 1, stride) for i in range(first, first + length)
    ]
    return functools.reduce(flat.add, parts)


def covering(starts: Ints, ends: Ints, extent: int) -> tuple[Ints, Ints]:
    """For each element of a dimension the range of those ranges that hold it: both bounds only grow."""
    places = np.arange(extent)
    first = np.searchsorted(np.array(ends), places, "right")
    last = np.searchsorted(np.array(starts), places, "right")
    return tuple(first.tolist()), tuple(np.maximum(last, first).tolist())


def _ranges(windows, dims):
    """The ranges of a pool along each of its dimensions."""
    ranges = []
    for d in range(dims):
        starts = [i * windows.stride[d] - windows.padding[d] for i in range(windows.counts[d])]
        ranges.append((tuple(starts), tuple([start + windows.kernel[d] for start in starts])))
    return ranges


def _divisors(shape, windows, count_include_pad, divisor):
    """By what the sum of each window is divided: one number, or some along each dimension."""
    if divisor is not None:
        return [np.full(1, divisor)]
    found = []
    for d, n in enumerate(shape):
        starts = np.arange(windows.counts[d]) * windows.stride[d] - windows.padding[d]
        ends = np.minimum(starts + windows.kernel[d], n + windows.padding[d])
        if not count_include_pad:
            starts, ends = np.maximum(starts, 0), np.minimum(ends, n)
        found.append(ends - starts)
    return found


def _divided(x, divisors):
    if all((numbers == numbers[0]).all() for numbers in divisors):
        return x / int(np.prod([int(numbers[0]) for numbers in divisors]))
    total = None
    for i, numbers in enumerate(divisors):
        row = flat.constant(numbers, x.dtype)
        row = flat.reshape(row, (len(numbers), *(1 for _ in divisors[i + 1 :])))
        total = row if total is None else total * row
    return x / total


@widened
def _average(x, dims, ranges, divisors):
    for i in reversed(range(dims)):
        x = range_sums(x, x.rank - dims + i, *ranges[i])
    return _divided(x, divisors)


@widened
def _spread(cotangent, dims, ranges, divisors, shape):
    x = _divided(cotangent, divisors)
    for i in reversed(range(dims)):
        starts, ends = ranges[i]
        x = range_sums(x, x.rank - dims + i, *covering(starts, ends, shape[i]))
    return x


def _checked(x, divisor, kinds=("int", "float")):
    if x.dtype.kind not in kinds:
        raise DTypeError(f"average-pooling is not defined for {x.dtype.name}", help="use a float dtype")
    if divisor == 0:
        raise DivisionByZero("divisor_override is zero")


# Rows

SHAPE = (5, 6, 7)


def _samples(dims):
    image = SHAPE[-dims:]
    one = lambda *numbers: numbers[:dims]
    more = [
        S(T(2, 3, *image), one(3, 2, 2), one(2, 2, 1), one(1, 1, 0), False, True, 3),
        S(T(2, 3, *image), one(3, 2, 2), one(2, 2, 1), one(1, 1, 0), True, False, -2),
    ]
    return [
        S(T(2, 3, *image), one(2, 2, 2)),
        S(T(3, *image), one(3, 2, 2), one(1, 2, 1), one(1, 1, 1)),
        S(T(2, 3, *image), one(3, 2, 3), one(2, 2, 3), one(1, 0, 1), True),
        S(T(2, 3, *image), one(3, 3, 2), one(2, 2, 2), one(1, 1, 1), True, False),
        S(T(2, 3, *image), one(3, 3, 2), one(1, 2, 3), one(1, 1, 0), False, False),
        S(T(0, 3, *image), one(2, 2, 2)),
        S(T(1, 2, *image), one(9, 2, 2)),
        *(more if dims > 1 else []),
    ]


def F(*shape):
    return T(*shape, dtype="float32")


def _declare(dims):
    """The rows avg_pool{dims}d, adaptive_avg_pool{dims}d and their gradients."""
    kernel = f"int[{dims}] kernel_size, int[{dims}] stride=[], int[{dims}] padding=0, "
    autocast = "cpu: float32" if dims == 3 else ""
    override = ", int? divisor_override=None" if dims > 1 else ""

    @op(
        f"avg_pool{dims}d(Tensor self, {kernel}bool ceil_mode=False, bool count_include_pad=True{override})"
        " -> Tensor",
        method=False,
        module=None if dims == 1 else "nn",
        samples=lambda: _samples(dims),
        autocast=autocast,
        torch_dialect=f"in_a_batch(avg_pool{dims}d, {dims}, self, kernel_size, stride, padding, ceil_mode, "
        f"count_include_pad{', divisor_override' if dims > 1 else ''})",
    )
    def avg_pool(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor=None):
        """The mean of each window."""
        _checked(x, divisor)
        windows = pool(x, dims, kernel, stride, padding, (1,), ceil_mode)
        divisors = _divisors(spatial(x, dims), windows, count_include_pad, divisor)
        return _average(x, dims, _ranges(windows, dims), divisors)

    def adaptive(x, output_size):
        """The mean of each of output_size windows that together cover the input."""
        image(x, dims)
        _checked(x, None, ("float",))
        counts = each(output_size, dims, "output_size", 0)
        if not x.numel or 0 in counts:
            return flat.full((*x.shape[: x.rank - dims], *counts), 0, x.dtype)
        return _average(x, dims, *_adaptive(spatial(x, dims), counts))

    size = f"(Tensor self, {'int' if dims == 1 else 'SymInt'}[{dims}] output_size) -> Tensor"
    op(
        f"adaptive_avg_pool{dims}d{size}",
        method=False,
        module=None if dims == 1 else "nn",
        samples=lambda: _adaptive_samples(dims),
        autocast=autocast,
        torch_dialect=f"adaptive_mean(adaptive_avg_pool{dims}d, self, output_size)",
    )(adaptive)
    if dims == 1:
        return
    op(
        f"_adaptive_avg_pool{dims}d{size}",
        method=False,
        samples=lambda: _adaptive_samples(dims),
        autocast=autocast,
        torch_dialect=f"adaptive_mean(adaptive_avg_pool{dims}d, self, output_size)",
    )(adaptive)

    @op(
        f"avg_pool{dims}d_backward(Tensor grad_output, Tensor self, {kernel.replace('=[]', '')[:-2]}".replace(
            "=0", ""
        )
        + ", bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        method=False,
        function=False,
        module="nn",
        samples=lambda: [
            S(T(2, 3, *(3,) * dims), T(2, 3, *(6,) * dims), *_same(dims, 2, 2, 0), False, True, None),
            # Where windows overlap PyTorch rounds each of their half-precision parts: floats are compared.
            S(F(2, 3, *(4,) * dims), F(2, 3, *(6,) * dims), *_same(dims, 3, 2, 1), True, False, None),
            S(F(3, *(7,) * dims), F(3, *(6,) * dims), *_same(dims, 2, 1, 1), False, True, 3),
        ],
    )
    def avg_pool_backward(cotangent, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
        """Each window's cotangent, divided, added to all its elements."""
        _checked(x, divisor)
        windows = pool(x, dims, kernel, stride, padding, (1,), ceil_mode)
        _fits(cotangent, x, dims, windows.counts)
        divisors = _divisors(spatial(x, dims), windows, count_include_pad, divisor)
        return _spread(cotangent, dims, _ranges(windows, dims), divisors, spatial(x, dims))

    @op(
        f"_adaptive_avg_pool{dims}d_backward(Tensor grad_output, Tensor self) -> Tensor",
        method=False,
        function=False,
        needs=f"same_channels<{dims}>",
        samples=lambda: [
            S(T(2, 3, *(3,) * dims), T(2, 3, *(6,) * dims)),
            S(F(3, *(4,) * dims), F(3, *(7,) * dims)),
            S(F(2, 3, *(5,) * dims), F(2, 3, *(3,) * dims)),
        ],
    )
    def adaptive_avg_pool_backward(cotangent, x):
        """Each window's cotangent, divided, added to all its elements."""
        _checked(x, None, ("float",))
        counts = spatial(cotangent, dims)
        _fits(cotangent, x, dims, counts)
        return _spread(cotangent, dims, *_adaptive(spatial(x, dims), counts), spatial(x, dims))


def _same(dims, *numbers):
    return [(number,) * dims for number in numbers]


def _fits(cotangent, x, dims, counts):
    if x.rank <= dims:
        raise ShapeError(f"the pool takes a tensor of {dims + 1} or {dims + 2} dimensions, not {x.type}")
    expected = (*x.shape[: x.rank - dims], *counts)
    if cotangent.shape != expected:
        raise ShapeError(f"grad_output {cotangent.type} is not of the result's shape {list(expected)}")
    if cotangent.dtype is not x.dtype:
        raise ArgumentError(f"the dtypes of {cotangent.type} and {x.type} differ")


def _adaptive(shape, counts):
    """The ranges of an adaptive pool, and their lengths."""
    found = [bounds(n, count) for n, count in zip(shape, counts, strict=True)]
    ranges = [(tuple(starts.tolist()), tuple(ends.tolist())) for starts, ends in found]
    return ranges, [ends - starts for starts, ends in found]


def _adaptive_samples(dims):
    image = SHAPE[-dims:]
    return [
        S(T(2, 3, *image), (2, 3, 2)[:dims]),
        S(T(3, *image), (1, 1, 1)[:dims]),
        S(T(2, 3, *image), (5, 3, 9)[:dims]),
        S(T(0, 3, *image), (2, 2, 2)[:dims]),
    ]


for _dims in (1, 2, 3):
    _declare(_dims)
