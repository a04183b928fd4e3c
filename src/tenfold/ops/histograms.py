"""Rows that count how many elements fall in each of a row of bins."""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.reductions import finite, widened
from tenfold.ops.samples import S, T
from tenfold.ops.searching import search
from tenfold.ops.sequences import linspace
from tenfold.ops.table import op, written


@op(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    differentiable=False,
    # Narrow floats round at the edges of bins: there samples stay inside.
    samples=lambda: [
        S(T(20, dtype="float32"), 5, -2, 2.5), S(T(4, 5, dtype="float64", low=-3, high=3), 7),
        S(T(20), 3, -64, 64), S(T(0), 4), S(T(3, low=1, high=1.001), 3), S(T(), 2, -9, 9),
    ], late=written)  # fmt: skip
def histc(x, bins, min, max):
    """How many elements fall in each of `bins` equal parts of min to max; if equal, of the data's range."""
    if not x.dtype.is_floating_point:
        raise DTypeError(f"histc takes floating-point tensors, not {x.dtype.name}")
    if bins <= 0:
        raise ArgumentError(f"histc: bins must be positive, not {bins}")
    if min > max:
        raise ArgumentError(f"histc: max must not be less than min, but they are {max} and {min}")
    wide = widened(flat.reshape(x, (-1,)))
    low, high = flat.constant(float(min), wide.dtype), flat.constant(float(max), wide.dtype)
    if min == max:
        low, high = _extent(wide, low, high)
    flat_range = flat.eq(low, high)
    low, high = flat.where(flat_range, low - 1, low), flat.where(flat_range, high + 1, high)
    low = flat.check(
        low, flat.is_finite(low) & flat.is_finite(high), ArgumentError, "histc: the range is not finite"
    )
    inside = flat.ge(wide, low) & flat.le(wide, high)
    place = flat.convert(flat.where(inside, (wide - low) * bins / (high - low), 0), dtypes.int64)
    place = flat.where(inside, flat.minimum(place, bins - 1), bins)
    return flat.convert(_counted(place, bins, flat.full(wide.shape, 1, dtypes.int64)), x.dtype)


def _extent(x, low, high):
    """The least and the greatest element; `low` and `high` if there is none, as may depend on data."""
    if not x.numel:
        return low, high
    least, greatest = flat.reduce(x, "min"), flat.reduce(x, "max")
    none = flat.gt(least, greatest)
    return flat.where(none, low, least), flat.where(none, high, greatest)


def _counted(places, bins, weights):
    """The sum of the weights at each place; places beyond the last bin count nowhere."""
    numbers = flat.ScatterDimensions((), (0,), (0,), 1)
    return flat.scatter(
        flat.full((bins,), 0, weights.dtype), flat.unsqueeze(places, 1), weights, numbers, "add"
    )


@op(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
    "bool density=False) -> (Tensor hist, Tensor bin_edges)",
    samples=lambda: [
        S(finite(20), 5), S(finite(4, 5), 3, range=[-1.0, 2.0], density=True), S(T(0), 3), S(finite(), 2),
        S(finite(20), 4, weight=T(20, low=0.5, high=2)), S(finite(20), 4, range=[1.0, 1.0]),
    ],
)  # fmt: skip
def histogram(x, bins, range, weight, density):
    """How many elements, or which weight, falls in each of `bins` equal parts of a range; and their edges."""
    _floats(x, weight)
    if bins <= 0:
        raise ArgumentError(f"histogram: bins must be positive, not {bins}")
    if range is not None:
        if len(range) != 2 or not all(map(math.isfinite, range)) or range[0] > range[1]:
            raise ArgumentError(f"histogram: the range is a finite lower and an upper bound, not {range}")
        low, high = (flat.constant(each, x.dtype) for each in range)
    else:
        low, high = _extent(x, flat.constant(0.0, x.dtype), flat.constant(1.0, x.dtype))
        bounded = flat.is_finite(low) & flat.is_finite(high)
        low = flat.check(low, bounded, ArgumentError, "histogram: the range of the data is not finite")
    empty = flat.eq(low, high)
    low, high = flat.where(empty, low - 0.5, low), flat.where(empty, high + 0.5, high)
    edges = linspace(low, high, bins + 1, x.dtype)
    return _between(x, edges, weight, density), edges


@op(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)",
    # Edges that are drawn are not in order: between two of them there is but one bin.
    samples=lambda: [
        S(T(20), T(2)),
        S(T(20, low=-3, high=3), T(2), weight=T(20, low=0.5, high=2), density=True),
    ],
)
def histogram_between(x, bins, weight, density):
    """How many elements, or which weight, falls between each two of the edges given."""
    _floats(x, weight)
    if bins.rank != 1 or bins.numel < 2 or bins.dtype is not x.dtype:
        raise ShapeError(
            f"histogram: the edges of bins for {x.type} are at least two {x.dtype.name}, not {bins.type}"
        )
    return _between(x, bins, weight, density), bins


def _floats(x, weight):
    if not x.dtype.is_floating_point:
        raise DTypeError(f"histogram takes floating-point tensors, not {x.dtype.name}")
    if weight is not None and (weight.dtype is not x.dtype or weight.numel != x.numel):
        raise ShapeError(
            f"histogram: each element of {x.type} needs a weight of its dtype, not {weight.type}"
        )


def _between(x, edges, weight, density):
    bins = edges.shape[0] - 1
    x = flat.reshape(x, (x.numel,))
    inside = flat.ge(x, flat.slice(edges, (0,), (1,))) & flat.le(x, flat.slice(edges, (bins,), (bins + 1,)))
    place = flat.minimum(search("histogram", edges, x, True, False) - 1, bins - 1)
    place = flat.where(inside, place, bins)
    each = flat.full(x.shape, 1, dtypes.int64) if weight is None else widened(flat.reshape(weight, x.shape))
    counts = flat.convert(_counted(place, bins, each), widened(x).dtype)
    if density:
        lengths = flat.slice(edges, (1,), (bins + 1,)) - flat.slice(edges, (0,), (bins,))
        counts = counts / flat.sum(counts) / widened(lengths)
    return flat.convert(counts, x.dtype)
