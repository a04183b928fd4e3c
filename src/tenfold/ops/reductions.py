"""Rows that fold dimensions away: sums, products, extremes, truth values and counts.

Narrow floats are folded in float32 and rounded once. Variances and norms: `statistics.py`.
"""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat.grad_folds import wide
from tenfold.ops.promote import common
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def dims_samples():
    """Calls of `(self, int[]? dim, bool keepdim)`."""
    calls = [S(T(2, 3, 4), dims) for dims in ([0], [-1], [0, 2], [], [-1, 0, 1])]
    return calls + [S(T(2, 3, 4), [1], True), S(T(3, 1), [0, 1], True), S(T(), [-1]), S(T(), [])]


def identity_samples():
    """As `dims_samples`, and with empty tensors, for folds that have an identity."""
    return [*dims_samples(), S(T(3, 0), [0]), S(T(0, 3), [0]), S(T(0, 3), [0], True), S(T(2, 0), [])]


def dim_samples():
    """Calls of `(self, int dim, bool keepdim)`."""
    return [S(T(2, 3, 4), 1), S(T(2, 3, 4), -1, True), S(T(5), 0), S(T(), 0), S(T(), -1, True)]


def finite(*shape, dtype=None):
    """A tensor without infinities and NaN, for calls in which PyTorch's own answer to them is not stable."""
    return T(*shape, dtype=dtype, low=-3, high=3)


def widened(x):
    return flat.convert(x, wide(x.dtype))


def counted(x, dtype):
    """x in the dtype of its sum: the one asked for, or int64 for integers and bool."""
    return flat.convert(x, dtype or (dtypes.int64 if x.dtype.kind in ("bool", "int") else x.dtype))


def fold(x, kind, dims, keepdim=False):
    return flat.convert(flat.reduce(widened(x), kind, dims, keepdim), x.dtype)


def extent(x, dims):
    """How many elements are folded into one."""
    count = 1
    for d in flat.axes(dims, x.rank):
        count *= x.shape[d]
    return count


@op(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    samples=lambda: [
        *identity_samples(),
        S(T(2, 3), None, dtype=dtypes.float64),
        S(finite(2, 3), [1], dtype=dtypes.int32),
    ],
    autocast="cuda: float32 result",
    grad_fn="SumBackward1",
)
def sum_dims(x, dims, keepdim, dtype):
    """The sum over dimensions; of integers and bools as int64."""
    return fold(counted(x, dtype), "add", dims, keepdim)


@op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", autocast="cuda: float32 result")
def sum(x, dtype):
    """The sum of all elements; of integers and bools as int64."""
    return sum_dims(x, None, False, dtype)


@op(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    samples=lambda: [*dim_samples(), S(T(3, 0), 0), S(T(0, 3), 0), S(T(2, 3), 1, dtype=dtypes.float64)],
    autocast="cpu: float32, cuda: float32 result",
    grad_fn="ProdBackward1",
    saves="other",
)
def prod_dim(x, dim, keepdim, dtype):
    """The product over a dimension; of integers and bools as int64."""
    return fold(counted(x, dtype), "mul", dim, keepdim)


@op(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    autocast="cpu: float32, cuda: float32 result",
    saves="other",
)
def prod(x, dtype):
    """The product of all elements; of integers and bools as int64."""
    return prod_dim(x, None, False, dtype)


@op(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    samples=lambda: [*identity_samples(), S(T(2, 3), None, dtype=dtypes.float64)],
    grad_fn="MeanBackward1",
    out_overload="out",
)
def mean_dims(x, dims, keepdim, dtype):
    """The mean over dimensions of elements that are floating point or complex; NaN of none."""
    x = flat.convert(x, dtype or x.dtype)
    inexact("mean", x)
    total, count = flat.sum(widened(x), dims, keepdim), extent(x, dims)
    if not count:  # it is no number, but the derivative of its derivative is
        nan = complex(math.nan, math.nan) if x.dtype.kind == "complex" else math.nan
        return flat.full(total.shape, nan, x.dtype) + flat.convert(total, x.dtype)
    return flat.convert(total / count, x.dtype)


@op("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor")
def mean(x, dtype):
    """The mean of all elements, which must be floating point or complex."""
    return mean_dims(x, None, False, dtype)


def inexact(name, x):
    if x.dtype.kind not in ("float", "complex") or x.dtype.itemsize == 1:
        raise DTypeError(
            f"{name} takes complex and floating-point tensors of at least 16 bits, not {x.dtype.name}",
            help="convert first, for example with .float()",
        )


def real(name, x):
    if x.dtype.is_complex:
        raise DTypeError(
            f"{name} is not defined for complex tensors", help="complex numbers have no order: use .abs()"
        )


@op(
    "sum_to_size(Tensor self, SymInt[] size) -> Tensor",
    function=False,
    samples=lambda: [
        S(T(2, 3), [1, 3]), S(T(2, 3), [3]), S(T(2, 3), []), S(T(2, 3), [2, 3]), S(T(0, 3), [1, 3]),
        S(T(), []), S(T(2, 3, 1), [2, 1, 1]),
    ],
)  # fmt: skip
def sum_to_size(x, size):
    """Sums over the dimensions by which the given shape would have to be stretched to this tensor's."""
    start = x.rank - len(size)
    dims = [d for d in range(x.rank) if d < start or size[d - start] != x.shape[d]]
    if start < 0 or [d for d in dims if d >= start and size[d - start] != 1]:
        raise ShapeError(f"{x.type} is not {list(size)} stretched, so it cannot be summed to it")
    return flat.reshape(sum_dims(x, tuple(dims), True, None), size) if dims or not size else x


@op(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    samples=identity_samples,
)
def nansum(x, dims, keepdim, dtype):
    """The sum over dimensions with NaN taken as zero."""
    real("nansum", x)
    return sum_dims(flat.where(flat.isnan(x), 0, x) if x.dtype.is_floating_point else x, dims, keepdim, dtype)


@op(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    samples=identity_samples,
)
def nanmean(x, dims, keepdim, dtype):
    """The mean over dimensions of the elements that are not NaN."""
    inexact("nanmean", x)
    real("nanmean", x)
    number = flat.eq(x, x)
    total = flat.sum(widened(flat.convert(flat.where(number, x, 0), dtype or x.dtype)), dims, keepdim)
    count = flat.convert(flat.sum(flat.convert(number, dtypes.int64), dims, keepdim), total.dtype)
    return flat.convert(total / count, dtype or x.dtype)


# Extremes


def _not_empty(name, x, dims):
    empty = [d for d in flat.axes(dims, x.rank) if x.shape[d] == 0]
    if empty:
        raise IndexOutOfRange(
            f"{x.type} has no elements along dimension {empty[0]}, and {name} of nothing is undefined",
            help="reduce dimensions that are not empty",
        )


def _extreme(name, x, kind, dims, keepdim):
    real(name, x)
    _not_empty(name, x, dims)
    return flat.reduce(x, kind, dims, keepdim)


@op("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", samples=dims_samples, saves="other")
def amax(x, dims, keepdim):
    """The largest element over dimensions; NaN if there is one. All that reach it share its gradient."""
    return _extreme("amax", x, "max", dims, keepdim)


@op("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", samples=dims_samples, saves="other")
def amin(x, dims, keepdim):
    """The smallest element over dimensions; NaN if there is one. All that reach it share its gradient."""
    return _extreme("amin", x, "min", dims, keepdim)


def to_equals(cotangent, result, x):
    """Equal parts to all elements that are the result of them all; where that is NaN, to all that are."""
    reached = flat.where(flat.isnan(result), flat.isnan(x), flat.eq(x, result))
    whole = widened(cotangent)
    count = flat.convert(flat.sum(flat.convert(reached, dtypes.int64)), whole.dtype)
    return flat.where(reached, flat.convert(whole / count, x.dtype), 0)


@flat.differentiated(lambda cotangent, result, x, kind: (to_equals(cotangent, result, x),))
def _extreme_of_all(x, kind):
    return _extreme(kind, x, kind, None, False)


@op(
    "max(Tensor self) -> Tensor",
    samples=lambda: [S(T(3, 4)), S(T()), S(T(7))],
    grad_fn="MaxBackward1",
    casts_out=True,
)
def max(x):
    """The largest element; NaN if there is one."""
    return _extreme_of_all(x, "max")


@op(
    "min(Tensor self) -> Tensor",
    samples=lambda: [S(T(3, 4)), S(T()), S(T(7))],
    grad_fn="MinBackward1",
    casts_out=True,
)
def min(x):
    """The smallest element; NaN if there is one."""
    return _extreme_of_all(x, "min")


@op("max.other(Tensor self, Tensor other) -> Tensor", promote=common, out_overload="out")
def max_other(x, y):
    """The larger of each pair of elements."""
    real("max", x)
    return flat.maximum(x, y)


@op("min.other(Tensor self, Tensor other) -> Tensor", promote=common, out_overload="out")
def min_other(x, y):
    """The smaller of each pair of elements."""
    real("min", x)
    return flat.minimum(x, y)


@op(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    samples=lambda: [
        S(T(3, 4)),
        S(T(3, 4), dim=1),
        S(T(3, 4), dim=-2, keepdim=True),
        S(T(), dim=0),
        S(T(), keepdim=True),
    ],
    saves="other",
)
def aminmax(x, dim, keepdim):
    """The smallest and the largest element, of all or along dim; NaN if there is one."""
    return tuple([_extreme("aminmax", x, kind, dim, keepdim) for kind in ("min", "max")])


@op("_aminmax(Tensor self) -> (Tensor, Tensor)", method=False, samples=lambda: [S(T(3, 4)), S(T())])
def _aminmax(x):
    """The smallest and the largest element; NaN if there is one."""
    return aminmax(x, None, False)


@op(
    "_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    method=False,
    samples=dim_samples,
)
def _aminmax_dim(x, dim, keepdim):
    """The smallest and the largest element along a dimension; NaN if there is one."""
    return aminmax(x, dim, keepdim)


def first_place(x, kind, dim):
    """The first place of the extreme, or of a NaN, along a dimension, which is kept."""
    found = flat.eq(x, flat.reduce(x, kind, dim, True))
    if x.dtype.is_floating_point:
        found = found | flat.isnan(x)
    n = x.shape[dim]
    small = dtypes.int32 if n < 2**31 else dtypes.int64
    places = flat.where(found, flat.iota(x.shape, dim, small), flat.full(x.shape, n, small))
    return flat.reduce(places, "min", dim, True)


def _with_place(name, x, kind, dim, keepdim):
    """The extreme along one dimension and its place. It is read from there, so its gradient goes there."""
    real(name, x)
    dim = flat.axis(dim, x.rank)
    _not_empty(name, x, dim)
    if not x.rank:
        return x, flat.constant(0, dtypes.int64)
    place = first_place(x, kind, dim)
    there = flat.eq(flat.iota(x.shape, dim, place.dtype), place)
    value = flat.reduce(flat.where(there, x, 0), "add", dim, keepdim)
    return value, flat.convert(place if keepdim else flat.squeeze(place, dim), dtypes.int64)


@op(
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    samples=dim_samples,
)
def max_dim(x, dim, keepdim):
    """The largest element along a dimension and its first place; NaN counts as the largest."""
    return _with_place("max", x, "max", dim, keepdim)


@op(
    "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    samples=dim_samples,
)
def min_dim(x, dim, keepdim):
    """The smallest element along a dimension and its first place; NaN counts as the smallest."""
    return _with_place("min", x, "min", dim, keepdim)


def _place(name, x, kind, dim, keepdim):
    real(name, x)
    if x.dtype.kind == "bool":
        raise DTypeError(
            f"{name} is not defined for bool tensors", help="convert first, for example with .int()"
        )
    _not_empty(name, x, dim)
    rank = x.rank
    x, axis = (x, flat.axis(dim, rank)) if dim is not None and rank else (flat.reshape(x, (-1,)), 0)
    place = flat.convert(first_place(x, kind, axis), dtypes.int64)
    if dim is None or not rank:
        return flat.reshape(place, (1,) * rank if keepdim else ())
    return place if keepdim else flat.squeeze(place, axis)


def place_samples():
    return [S(T(3, 4)), S(T(3, 4), None, True), S(T()), *dim_samples()]


@op(
    "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    samples=place_samples,
    positions="-> 0",
)
def argmax(x, dim, keepdim):
    """The first place of the largest element, along a dimension or in the flattened tensor."""
    return _place("argmax", x, "max", dim, keepdim)


@op(
    "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    samples=place_samples,
    positions="-> 0",
)
def argmin(x, dim, keepdim):
    """The first place of the smallest element, along a dimension or in the flattened tensor."""
    return _place("argmin", x, "min", dim, keepdim)


# Truth values and counts


def _truth(x, kind, dims, keepdim):
    truth = flat.convert(x, dtypes.bool_)
    # Unlike other folds, these take an empty list to mean no dimension.
    result = truth if dims == () else flat.reduce(truth, kind, dims, keepdim)
    return flat.convert(result, dtypes.uint8) if x.dtype is dtypes.uint8 else result


@op(
    "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    samples=identity_samples,
    casts_out=(dtypes.uint8,),
)
def any_dims(x, dims, keepdim):
    """Whether any element over dimensions is not zero; of none at all False. [] folds no dimension."""
    return _truth(x, "or", dims, keepdim)


@op(
    "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    out_overload="out",
    samples=lambda: [*dim_samples(), S(T(3, 0), 0), S(T(0, 3), 0)],
    casts_out=(dtypes.uint8,),
)
def any_dim(x, dim, keepdim):
    """Whether any element along a dimension is not zero; of none at all False."""
    return _truth(x, "or", dim, keepdim)


@op("any(Tensor self) -> Tensor", casts_out=(dtypes.uint8,))
def any(x):
    """Whether any element is not zero."""
    return _truth(x, "or", None, False)


@op(
    "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    samples=identity_samples,
    casts_out=(dtypes.uint8,),
)
def all_dims(x, dims, keepdim):
    """Whether no element over dimensions is zero; of none at all True. [] folds no dimension."""
    return _truth(x, "and", dims, keepdim)


@op(
    "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    out_overload="out",
    samples=lambda: [*dim_samples(), S(T(3, 0), 0), S(T(0, 3), 0)],
    casts_out=(dtypes.uint8,),
)
def all_dim(x, dim, keepdim):
    """Whether no element along a dimension is zero; of none at all True."""
    return _truth(x, "and", dim, keepdim)


@op("all(Tensor self) -> Tensor", casts_out=(dtypes.uint8,))
def all(x):
    """Whether no element is zero."""
    return _truth(x, "and", None, False)


@op(
    "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    samples=lambda: [S(T(2, 3, 4), [0, 2]), S(T(2, 3, 4), []), S(T(0, 3), [0]), S(T(), [0])],
)
def count_nonzero_dims(x, dims):
    """How many elements over dimensions are not zero."""
    return flat.sum(flat.convert(flat.convert(x, dtypes.bool_), dtypes.int64), dims)


@op(
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    samples=lambda: [S(T(3, 4)), S(T(3, 4), -1), S(T(0, 3)), S(T())],
)
def count_nonzero(x, dim):
    """How many elements are not zero."""
    return count_nonzero_dims(x, dim)
