"""Rows that put elements in order, and those that pick by rank: top-k, medians, quantiles, the mode.

NaN counts as larger than all numbers, and sorting is stable. What is sorted are integers that say where an
element goes; elements are then read from their places, so gradients go back there.
"""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.ops.reductions import dim_samples, finite, first_place, real, to_equals
from tenfold.ops.samples import S, T
from tenfold.ops.scans import running
from tenfold.ops.table import op

TIES = "PyTorch does not say which of several equal elements' places it gives"
UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def _keys(x, descending):
    """Unsigned integers in the order of x's elements."""
    unsigned = UNSIGNED[x.dtype.itemsize]
    sign = 1 << (8 * x.dtype.itemsize - 1)
    if x.dtype.kind == "float":
        x = flat.where(flat.isnan(x), float("nan"), flat.where(flat.eq(x, 0), 0, x))
        bits = flat.bitcast(x, unsigned)
        keys = flat.where(flat.ge(bits, sign) & flat.eq(x, x), flat.invert(bits), bits | sign)
    elif x.dtype.is_signed:
        keys = flat.bitcast(x, unsigned) ^ sign
    else:
        keys = flat.convert(x, unsigned)
    return flat.invert(keys) if descending else keys


def order(x, dim, descending=False):
    """The places of x's elements along a dimension, in order; equal elements keep theirs."""
    keys = _keys(x, descending)
    if x.dtype.itemsize < 8 and x.shape[dim] < 2**32:
        # Key and place in one integer: XLA sorts a single array of integers much faster than pairs.
        packed = flat.shift_left(flat.convert(keys, dtypes.uint64), 32) | flat.iota(
            x.shape, dim, dtypes.uint64
        )
        (packed,) = flat.sort([packed], dim, flat.lt)
        return flat.convert(packed & 0xFFFFFFFF, dtypes.int64)
    places = flat.iota(x.shape, dim, dtypes.int64)
    return flat.sort([keys, places], dim, lambda a, b, i, j: flat.lt(a, b))[1]


def _ordered(name, x, dim, descending):
    real(name, x)
    dim = flat.axis(dim, x.rank)
    if not x.rank or not x.numel:
        return x, flat.full(x.shape, 0, dtypes.int64)
    places = order(x, dim, descending)
    return flat.take_along(x, places, dim), places


def sort_samples():
    return [S(T(5)), S(T(3, 4), 0), S(T(3, 4), -1, True), S(T()), S(T(), 0, True), S(T(0, 3), 0)]


def stable_samples():
    return [
        S(T(5), stable=True),
        S(T(3, 4), stable=True, dim=0, descending=True),
        S(T(), stable=False, dim=-1),
        S(T(2, 40), stable=True, dim=1),
    ]


@op(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    samples=sort_samples,
)
def sort(x, dim, descending):
    """The elements in order along a dimension, and the places they came from. NaN counts as the largest."""
    return _ordered("sort", x, dim, descending)


@op(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) "
    "-> (Tensor values, Tensor indices)",
    samples=stable_samples,
)
def sort_stable(x, stable, dim, descending):
    """The elements in order along a dimension, and the places they came from; equal ones keep their order."""
    return _ordered("sort", x, dim, descending)


@op(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    samples=sort_samples,
    positions="-> 0",
)
def argsort(x, dim, descending):
    """The places from which sort's elements come."""
    return _ordered("argsort", x, dim, descending)[1]


@op(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    samples=stable_samples,
    positions="-> 0",
)
def argsort_stable(x, stable, dim, descending):
    """The places from which the elements of a stable sort come."""
    return _ordered("argsort", x, dim, descending)[1]


@op("msort(Tensor self) -> Tensor", samples=lambda: [S(T(5)), S(T(3, 4)), S(T(0, 3)), S(T())])
def msort(x):
    """The elements in order along the first dimension."""
    return _ordered("msort", x, 0, False)[0]


@op(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) "
    "-> (Tensor values, Tensor indices)",
    samples=lambda: [
        S(T(5), 2),
        S(T(3, 4), 2, 0, False),
        S(T(3, 4), 4),
        S(T(3, 4), 0),
        S(T(), 1),
        S(T(2, 50), 7, 1, False),
    ],
    differs=TIES,
)
def topk(x, k, dim, largest, sorted):
    """The k largest (or smallest) elements along a dimension, best first, and their places."""
    real("topk", x)
    if x.dtype.kind == "bool":
        raise DTypeError("topk is not defined for bool tensors", help="convert it with .int()")
    dim = flat.axis(dim, x.rank)
    extent = x.shape[dim] if x.rank else 1
    if not 0 <= k <= extent:
        raise IndexOutOfRange(
            f"k={k} is out of range for dimension {dim} of {x.type}", help=f"use 0 to {extent}"
        )
    if not x.rank:
        return x, flat.constant(0, dtypes.int64)
    places = (
        flat.slice_dim(order(x, dim, largest), dim, 0, k) if x.numel else flat.slice_dim(_zeros(x), dim, 0, k)
    )
    return read(x, places, dim), places


def _zeros(x):
    return flat.full(x.shape, 0, dtypes.int64)


def read(x, places, dim):
    """The elements at these places; none if there are none."""
    return flat.take_along(x, places, dim) if places.numel else flat.full(places.shape, 0, x.dtype)


# Picking one by rank


def _picked(x, places, dim, keepdim):
    """The element at one place along a dimension, and the place."""
    values = read(x, places, dim)
    return (values, places) if keepdim else (flat.squeeze(values, dim), flat.squeeze(places, dim))


def _not_empty(name, x, dim):
    if x.rank and x.shape[dim] == 0:
        raise IndexOutOfRange(
            f"{name}: dimension {dim} of {x.type} is empty", help="it needs at least one element"
        )


@op(
    "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    samples=lambda: [
        S(T(5), 2),
        S(T(3, 4), 1, 0, True),
        S(T(3, 4), 4),
        S(T(), 1),
        S(T(3, 0), 2, 0),
        S(T(40), 11),
    ],
    differs=TIES,
)
def kthvalue(x, k, dim, keepdim):
    """The k-th smallest element along a dimension, counted from 1, and its place."""
    dim = flat.axis(dim, x.rank)
    extent = x.shape[dim] if x.rank else 1
    if not 1 <= k <= extent:
        raise IndexOutOfRange(
            f"k={k} is out of range for dimension {dim} of {x.type}", help=f"use 1 to {extent}"
        )
    if not x.rank:
        return x, flat.constant(0, dtypes.int64)
    real("kthvalue", x)
    places = order(x, dim) if x.numel else _zeros(x)
    return _picked(x, flat.slice_dim(places, dim, k - 1, k), dim, keepdim)


def _median(name, x, dim, keepdim, skip_nan):
    real(name, x)
    dim = flat.axis(dim, x.rank)
    _not_empty(name, x, dim)
    if x.dtype.kind == "bool":
        raise DTypeError(f"{name} is not defined for bool", help="convert first, for example with .int()")
    if not x.rank:
        return x, flat.constant(0, dtypes.int64)
    n = x.shape[dim]
    places = order(x, dim) if x.numel else _zeros(x)
    if not x.dtype.is_floating_point:
        return _picked(x, flat.slice_dim(places, dim, (n - 1) // 2, (n - 1) // 2 + 1), dim, keepdim)
    nans = flat.sum(flat.convert(flat.isnan(x), dtypes.int64), dim, True)
    if skip_nan:
        rank = flat.shift_right(flat.maximum(n - 1 - nans, 0), 1)
    else:
        rank = flat.where(flat.gt(nans, 0), n - nans, flat.full_like(nans, (n - 1) // 2))
    return _picked(x, read(places, rank, dim), dim, keepdim)


def _median_of_all(name, x, skip_nan):
    real(name, x)
    if not x.numel:
        return flat.constant(float("nan") if x.dtype.is_floating_point else flat.lowest(x.dtype), x.dtype)
    return _middle(x, name, skip_nan)


@flat.differentiated(lambda cotangent, result, x, name, skip_nan: (to_equals(cotangent, result, x),))
def _middle(x, name, skip_nan):
    return _median(name, flat.reshape(x, (-1,)), 0, False, skip_nan)[0]


@op("median(Tensor self) -> Tensor", samples=lambda: [S(T(5)), S(T(3, 4)), S(T())])
def median(x):
    """The median of all elements, the lower of two; NaN if there is one."""
    return _median_of_all("median", x, False)


@op("nanmedian(Tensor self) -> Tensor", samples=lambda: [S(T(5)), S(T(3, 4)), S(T())])
def nanmedian(x):
    """The median, the lower of two, of the elements that are not NaN."""
    return _median_of_all("nanmedian", x, True)


@op(
    "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    samples=dim_samples,
    differs=TIES,
    grad_fn="MedianBackward1",
    needs="unrepeated",
)
def median_dim(x, dim, keepdim):
    """The median along a dimension, the lower of two, and its place; NaN if there is one."""
    return _median("median", x, dim, keepdim, False)


@op(
    "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    samples=dim_samples,
    differs=TIES,
    needs="unrepeated",
)
def nanmedian_dim(x, dim, keepdim):
    """The median along a dimension, the lower of two, of the elements that are not NaN, and its place."""
    return _median("nanmedian", x, dim, keepdim, True)


@op(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    samples=lambda: [
        S(finite(2, 3, 4), 1),
        S(T(), -1, True),
        S(finite(3, 9)),
        S(T(9, 2, low=0, high=3), 0, True),
    ],
)
def mode(x, dim, keepdim):
    """The commonest element along a dimension, the smallest of several such, and its last place."""
    dim = flat.axis(dim, x.rank)
    _not_empty("mode", x, dim)
    if not x.rank:
        return x, flat.constant(0, dtypes.int64)
    real("mode", x)
    n = x.shape[dim]
    if not x.numel:
        return _picked(x, flat.slice_dim(_zeros(x), dim, 0, 1), dim, keepdim)
    places = order(x, dim)
    values = flat.take_along(x, places, dim)
    changes = flat.ne(flat.slice_dim(values, dim, 0, n - 1), flat.slice_dim(values, dim, 1, n))
    low, high = [0] * x.rank, [0] * x.rank
    low[dim] = 1
    starts, ends = flat.pad(changes, low, high, True), flat.pad(changes, high, low, True)
    here = flat.iota(x.shape, dim, dtypes.int64)
    length = here - running(flat.where(starts, here, 0), flat.maximum, dim) + 1
    best = first_place(flat.where(ends, length, 0), "max", dim)
    return _picked(x, flat.take_along(places, flat.convert(best, dtypes.int64), dim), dim, keepdim)


# Quantiles


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile_samples(*qs):
    calls = [
        S(finite(3, 4), q, d, interpolation=how) for q in qs for d in (None, 1) for how in INTERPOLATIONS
    ]
    return [*calls, S(T(3, 4), qs[0], 0, True), S(T(3, 4), qs[0], None, True), S(T(), qs[0], -1, True)]


def tensor_q_samples():
    return quantile_samples(T(3, low=0, high=1), T(low=0, high=1))


def number_q_samples():
    return quantile_samples(0.3, 0.5, 1.0)


def _quantile(name, x, q, dim, keepdim, interpolation, skip_nan):
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise DTypeError(f"{name} takes float32 or float64 tensors, not {x.dtype.name}")
    if interpolation not in INTERPOLATIONS:
        raise ArgumentError(
            f"{name}: unknown interpolation {interpolation!r}", help=f"use one of {', '.join(INTERPOLATIONS)}"
        )
    if not x.numel:
        raise ShapeError(f"{name} of no elements is undefined, and {x.type} has none")
    rank = x.rank
    axis = flat.axis(dim, rank) if dim is not None else None
    x = flat.reshape(x, (-1,)) if axis is None or not rank else flat.move(x, axis, rank - 1)
    rows, n = x.shape[:-1], x.shape[-1]
    values = read(x, order(x, x.rank - 1), x.rank - 1)
    nans = flat.sum(flat.convert(flat.isnan(x), x.dtype), x.rank - 1, True)
    wanted = flat.broadcast_to(flat.reshape(q, (-1,)), (*rows, q.numel))
    if skip_nan:
        ranks = flat.maximum(wanted * (n - 1 - nans), 0)
    else:
        ranks = flat.where(flat.gt(nans, 0), float(n - 1), wanted * (n - 1))
    result = _interpolated(values, ranks, interpolation)
    shape = () if axis is None or not rank else rows
    if q.rank:
        result = flat.move(result, result.rank - 1, 0)
    if keepdim:
        shape = (1,) * rank if axis is None or not rank else (*rows[:axis], 1, *rows[axis:])
    return flat.reshape(result, (*q.shape, *shape))


def _interpolated(values, ranks, how):
    """The elements at fractional places along the last dimension."""
    last = values.rank - 1
    if how == "nearest":
        ranks = flat.round_half_even(ranks)
    below, above = flat.floor(ranks), flat.ceil(ranks)
    picks = [read(values, flat.convert(each, dtypes.int64), last) for each in (below, above)]
    if how in ("lower", "nearest"):
        return picks[0]
    if how == "higher":
        return picks[1]
    weight = flat.full_like(ranks, 0.5) if how == "midpoint" else ranks - below
    step = picks[1] - picks[0]
    return flat.where(flat.lt(weight, 0.5), picks[0] + weight * step, picks[1] - step * (1 - weight))


def _inside(name, x, q):
    """A tensor of quantiles, with a check that they are between 0 and 1."""
    if q.dtype is not x.dtype:
        raise DTypeError(f"{name}: q must have the dtype of the tensor, {x.dtype.name}, not {q.dtype.name}")
    if q.rank > 1:
        raise ShapeError(f"{name}: q must be a number or one-dimensional, not {q.type}")
    return flat.check(q, flat.ge(q, 0) & flat.le(q, 1), ArgumentError, f"{name}: q must be between 0 and 1")


def _number(name, x, q):
    if flat.known(q) and not 0 <= q <= 1:
        raise ArgumentError(f"{name}: q must be between 0 and 1, not {q}")
    return flat.constant(q, x.dtype)


QUANTILE = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"


@op(f"quantile(Tensor self, Tensor q, {QUANTILE}", samples=tensor_q_samples, autocast="cpu: float32")
def quantile(x, q, dim, keepdim, interpolation):
    """The q-th quantiles along a dimension or of all elements; NaN if there is one."""
    return _quantile("quantile", x, _inside("quantile", x, q), dim, keepdim, interpolation, False)


@op(f"quantile.scalar(Tensor self, float q, {QUANTILE}", samples=number_q_samples, autocast="cpu: float32")
def quantile_scalar(x, q, dim, keepdim, interpolation):
    """The q-th quantile along a dimension or of all elements; NaN if there is one."""
    return _quantile("quantile", x, _number("quantile", x, q), dim, keepdim, interpolation, False)


@op(f"nanquantile(Tensor self, Tensor q, {QUANTILE}", samples=tensor_q_samples, autocast="cpu: float32")
def nanquantile(x, q, dim, keepdim, interpolation):
    """The q-th quantiles along a dimension or of all elements, of those that are not NaN."""
    return _quantile("nanquantile", x, _inside("nanquantile", x, q), dim, keepdim, interpolation, True)


@op(f"nanquantile.scalar(Tensor self, float q, {QUANTILE}", samples=number_q_samples, autocast="cpu: float32")
def nanquantile_scalar(x, q, dim, keepdim, interpolation):
    """The q-th quantile along a dimension or of all elements, of those that are not NaN."""
    return _quantile("nanquantile", x, _number("nanquantile", x, q), dim, keepdim, interpolation, True)
