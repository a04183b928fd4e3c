"""Max-pool rows, with and without the places of the maxima, which also carry the gradient back.

Of equal maxima the first counts, of several NaNs the last, as in PyTorch.
"""

import itertools
import math

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat.remat import derived
from tenfold.flat.windows import ReduceWindow
from tenfold.ops import tile_pooling
from tenfold.ops.placing import put
from tenfold.ops.samples import S, T
from tenfold.ops.spatial import each, image, pool, spatial
from tenfold.ops.table import op

# Windows of more elements are folded by a reduction: unrolled they would take long to compile.
MOST_TAPS = 64


def _plain_put(cotangent, places, shape, windows):
    return (put(cotangent, places, shape),)


def _put_by_tiles(cotangent, places, shape, windows):
    if not tile_pooling.fits((*cotangent.shape[:-2], *shape), cotangent.dtype, windows):
        return _plain_put(cotangent, places, shape, windows)
    return (tile_pooling.call_put(cotangent, places, shape, windows),)


_put = flat.differentiated(derived(_plain_put), elsewhere={"triton": _put_by_tiles})(_plain_put)


def _of_largest(cotangents, results, x, dims, windows):
    cotangent = cotangents[0]
    return _put(cotangent, results[1], spatial(x, dims), windows) if cotangent is not None else (None,)


def _largest_by_tiles(x, dims, windows):
    if not tile_pooling.fits(x.shape, x.dtype, windows):
        return _plain_largest(x, dims, windows)
    best, place = tile_pooling.call_largest(x, windows)
    return best, flat.convert(place, dtypes.int64)


@flat.differentiated(_of_largest, elsewhere={"triton": _largest_by_tiles})
def largest(x, dims, windows):
    """The largest element of each window, and its place in the image."""
    return _plain_largest(x, dims, windows)


def _plain_largest(x, dims, windows):
    check_ordered(x)
    if not x.numel:
        return nothing((*x.shape[: x.rank - dims], *windows.counts), x.dtype)
    fold = _unrolled if math.prod(windows.kernel) <= MOST_TAPS else _folded
    best, place = fold(x, dims, windows)
    return best, flat.convert(place, dtypes.int64)


def check_ordered(x):
    if x.dtype.kind not in ("int", "float"):
        raise DTypeError(f"max-pooling is not defined for {x.dtype.name}", help="it takes int, float tensors")


def nothing(shape, dtype):
    return flat.full(shape, 0, dtype), flat.full(shape, 0, dtypes.int64)


def is_better(part, best):
    """Whether an element replaces the best of those before it."""
    better = part > best
    return better | flat.isnan(part) if part.dtype.is_floating_point else better


def _unrolled(x, dims, windows):
    kernel, stride, padding, dilation, counts = windows
    lead, shape = x.shape[: x.rank - dims], spatial(x, dims)
    zeros, ones = (0,) * len(lead), (1,) * len(lead)
    wide = flat.pad(x, (*zeros, *padding), (*zeros, *windows.overhang(shape)), flat.lowest(x.dtype))
    steps = [math.prod(shape[d + 1 :]) for d in range(dims)]
    corners = [np.arange(n) * s - p for n, s, p in zip(counts, stride, padding, strict=True)]
    # Where nothing is larger than the lowest, a window's choice is its first element inside the image.
    firsts = [-(np.minimum(corner, 0) // d) * d for corner, d in zip(corners, dilation, strict=True)]
    offset = _numbers(firsts, steps)

    def part_from(starts):
        limits = [start + (n - 1) * s + 1 for start, n, s in zip(starts, counts, stride, strict=True)]
        return flat.slice(wide, (*zeros, *starts), (*lead, *limits), (*ones, *stride))

    taps = [
        [i * d for i, d in zip(tap, dilation, strict=True)] for tap in itertools.product(*map(range, kernel))
    ]
    best = part_from(taps[0])
    for starts in taps[1:]:
        part = part_from(starts)
        better = is_better(part, best)
        best = flat.where(better, part, best)
        offset = flat.where(better, sum(i * step for i, step in zip(starts, steps, strict=True)), offset)
    return best, flat.broadcast_to(offset + _numbers(corners, steps), best.shape)


def _numbers(along, steps):
    """A number for each window: those along each dimension times its step, added up."""
    total = None
    for d, (numbers, step) in enumerate(zip(along, steps, strict=True)):
        row = flat.constant(numbers * step, dtypes.int32)
        row = flat.reshape(row, [len(numbers) if i == d else 1 for i in range(len(along))])
        total = row if total is None else total + row
    return total


def _folded(x, dims, windows):
    shape, lead = spatial(x, dims), x.rank - dims
    places = flat.reshape(flat.arange(math.prod(shape), dtypes.int32), shape)
    lowest, none = flat.constant(flat.lowest(x.dtype), x.dtype), flat.constant(2**31 - 1, dtypes.int32)
    ones = (1,) * lead
    padding = ((0, 0),) * lead + tuple(zip(windows.padding, windows.overhang(shape), strict=True))
    return ReduceWindow(
        (x, flat.broadcast_to(places, x.shape)),
        (lowest, none),
        (*ones, *windows.kernel),
        (*ones, *windows.stride),
        (1,) * x.rank,
        (*ones, *windows.dilation),
        padding,
        flat.function(better_of, [lowest.type, none.type] * 2),
    ).results


def better_of(best, place, part, at):
    """The better of two elements with places: larger, or NaN; of equal ones the first, of NaNs the last."""
    better = (part > best) | (flat.eq(part, best) & (at < place))
    if part.dtype.is_floating_point:
        blank, was_blank = flat.isnan(part), flat.isnan(best)
        better = (blank & (~was_blank | (at > place))) | (~blank & ~was_blank & better)
    return flat.where(better, part, best), flat.where(better, at, place)


# Rows

SHAPE = (5, 6, 7)


def _samples(dims):
    image = SHAPE[-dims:]
    one = lambda *numbers: numbers[:dims]
    return [
        S(T(2, 3, *image), one(2, 2, 2)),
        S(T(3, *image), one(3, 2, 2), one(1, 2, 1), one(1, 1, 1)),
        S(T(2, 3, *image), one(3, 2, 3), one(2, 2, 3), one(1, 0, 1), one(1, 1, 2), True),
        S(T(2, 1, *image), one(2, 3, 2), one(3, 3, 2), one(1, 1, 0), one(2, 1, 1), False),
        S(T(0, 3, *image), one(2, 2, 2)),
        S(T(2, 3, *image, low=-3, high=4, dtype="int64"), one(3, 3, 3), one(2, 2, 2)),
        S(T(1, 2, *image), one(9, 2, 2)),
        S(T(1, 2, *image), one(2, 2, 2), one(1, 1, 1), one(2, 2, 2)),
    ]


def _declare(dims):
    """The rows max_pool{dims}d, max_pool{dims}d_with_indices and the gradient by indices."""
    settings = (
        f"int[{dims}] kernel_size, int[{dims}] stride=[], int[{dims}] padding=0, int[{dims}] dilation=1, "
        "bool ceil_mode=False"
    )
    batched = f"{dims}, self, kernel_size, stride, padding, dilation, ceil_mode"

    @op(
        f"max_pool{dims}d(Tensor self, {settings}) -> Tensor",
        method=False,
        samples=lambda: _samples(dims),
        grad_fn=f"MaxPool{dims}DWithIndicesBackward0" if dims > 1 else "",
        torch_dialect=f"in_a_batch(max_pool{dims}d, {batched})",
    )
    def max_pool(x, kernel, stride, padding, dilation, ceil_mode):
        """The largest element of each window."""
        return largest(x, dims, pool(x, dims, kernel, stride, padding, dilation, ceil_mode))[0]

    @op(
        f"max_pool{dims}d_with_indices(Tensor self, {settings}) -> (Tensor, Tensor)",
        method=False,
        function=dims == 1,
        module=None if dims == 1 else "nn",
        samples=lambda: _samples(dims),
        torch_dialect=f"in_a_batch(max_pool{dims}d_with_indices, {batched})",
        out_names="out indices",
    )
    def max_pool_with_indices(x, kernel, stride, padding, dilation, ceil_mode):
        """The largest element of each window, and its place in the flattened image."""
        return largest(x, dims, pool(x, dims, kernel, stride, padding, dilation, ceil_mode))

    if dims > 1:
        settings = settings.replace("=[]", "").replace("=0", "").replace("=1", "").replace("=False", "")
        shape = (4,) * dims

        @op(
            f"max_pool{dims}d_with_indices_backward(Tensor grad_output, Tensor self, {settings}, "
            "Tensor indices) -> Tensor",
            method=False,
            function=False,
            module="nn",
            # The empty one comes first: of others wrong variants are tried, on which PyTorch crashes.
            samples=lambda: [
                S(
                    T(batch, 3, *(2,) * dims),
                    T(batch, 3, *shape),
                    *((2,) * dims, (2,) * dims, (0,) * dims, (1,) * dims),
                    False,
                    T(batch, 3, *(2,) * dims, dtype="int64", low=0, high=4**dims),
                )
                for batch in (0, 2)
            ],
            positions="not indices",
            needs=f"indices_of_pooling<{dims}, 7>",
        )
        def max_pool_with_indices_backward(
            cotangent, x, kernel, stride, padding, dilation, ceil_mode, indices
        ):
            """Each window's cotangent added at the place of its maximum."""
            windows = pool(x, dims, kernel, stride, padding, dilation, ceil_mode)
            return put_back(cotangent, x, dims, windows.counts, indices)


def put_back(cotangent, x, dims, counts, indices):
    """Cotangents added at their places in an image like x."""
    expected = (*x.shape[: x.rank - dims], *counts)
    if cotangent.shape != expected or indices.shape != expected:
        raise ShapeError(f"{cotangent.type} at {indices.type} are not of the result's shape {list(expected)}")
    if cotangent.dtype is not x.dtype or indices.dtype is not dtypes.int64:
        raise DTypeError(
            f"grad_output must be of the dtype of {x.type} and indices int64, not {indices.type}"
        )
    shape = spatial(x, dims)
    inside = (indices >= 0) & (indices < math.prod(shape))
    message = f"a place of a maximum lies outside of the image of shape {list(shape)}"
    return put(flat.check(cotangent, inside, IndexOutOfRange, message), indices, shape)


for _dims in (1, 2, 3):
    _declare(_dims)


# Adaptive pools: windows that divide a dimension as evenly as can be


def bounds(extent, count):
    """Where each of `count` windows over a dimension starts and ends."""
    places = np.arange(count)
    return places * extent // count, -(-(places + 1) * extent // count)


def _of_adaptive_largest(cotangents, results, x, dims, _):
    cotangent = cotangents[0]
    return (None if cotangent is None else put(cotangent, results[1], spatial(x, dims)),)


@flat.differentiated(_of_adaptive_largest)
def adaptive_largest(x, dims, counts):
    """The largest element of each of the windows that divide the image, and its place."""
    check_ordered(x)
    if not x.numel or 0 in counts:
        return nothing((*x.shape[: x.rank - dims], *counts), x.dtype)
    shape = spatial(x, dims)
    places = flat.reshape(flat.arange(math.prod(shape), dtypes.int32), shape)
    best, place = x, flat.broadcast_to(places, x.shape)
    for dim in range(x.rank - 1, x.rank - dims - 1, -1):
        starts, ends = bounds(x.shape[dim], counts[dim - (x.rank - dims)])
        longest = int((ends - starts).max())
        # Shorter windows meet their last element again, which changes nothing.
        rows = np.minimum(starts[:, None] + np.arange(longest), ends[:, None] - 1)
        best, place = _along(best, place, dim, rows)
    return best, flat.convert(place, dtypes.int64)


def _along(x, places, dim, rows):
    """Fold windows along one dimension; `rows` lists for each the places that it covers."""
    rows = flat.constant(rows, dtypes.int32)
    parts, at = flat.take(x, rows, dim), flat.take(places, rows, dim)
    inits = (flat.lowest(x.dtype), 2**31 - 1)
    return flat.reduce_with((parts, at), inits, (dim + 1,), better_of)


def _adaptive_samples(dims):
    image = SHAPE[-dims:]
    return [
        S(T(2, 3, *image), (2, 3, 2)[:dims]),
        S(T(3, *image), (1, 1, 1)[:dims]),
        S(T(2, 3, *image), (5, 3, 9)[:dims]),
        S(T(0, 3, *image), (2, 2, 2)[:dims]),
        S(T(2, 3, *image, low=-2, high=2, dtype="int64"), (2, 2, 2)[:dims]),
    ]


def _declare_adaptive(dims):
    """The rows adaptive_max_pool{dims}d and their gradients."""

    @op(
        f"adaptive_max_pool{dims}d(Tensor self, int[{dims}] output_size) -> (Tensor, Tensor)",
        method=False,
        function=dims == 1,
        module=None if dims == 1 else "nn",
        samples=lambda: _adaptive_samples(dims),
        autocast="cpu: float32" if dims == 3 else "",
        torch_dialect=f"adaptive_largest(adaptive_max_pool{dims}d, self, output_size)",
        out_names="out indices",
    )
    def adaptive_max_pool(x, output_size):
        """The maximum of each of output_size windows that together cover the input, and its position."""
        image(x, dims)
        return adaptive_largest(x, dims, each(output_size, dims, "output_size", 0))

    if dims == 2:

        @op(
            f"adaptive_max_pool{dims}d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
            method=False,
            function=False,
            module="nn",
            # PyTorch reads indices in the order of memory: these have but one. Why the first is empty: above.
            samples=lambda: [
                S(
                    T(batch, *(1,) * dims, 4),
                    T(batch, *(1,) * (dims - 1), 5, 5),
                    T(batch, *(1,) * dims, 4, dtype="int64", low=0, high=25),
                )
                for batch in (0, 1)
            ],
            positions="not indices",
            needs=f"indices_of_pooling<{dims}, 2>",
        )
        def adaptive_max_pool_backward(cotangent, x, indices):
            """Each window's cotangent added at the place of its maximum."""
            return put_back(cotangent, x, dims, spatial(cotangent, dims), indices)


for _dims in (1, 2, 3):
    _declare_adaptive(_dims)
