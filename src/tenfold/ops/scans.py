"""Rows that run along one dimension: running sums, products, extremes; differences; the trapezoidal rule."""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.promote import common, floating, result_dtype
from tenfold.ops.reductions import counted, finite, inexact, real, sum_dims, widened
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def running(x, combine, dim):
    """The running fold of x along a dimension by an associative function: about 2n steps in log(n) rounds."""
    n = x.shape[dim] if x.rank else 0
    if x.numel == 0 or n < 2:
        return x
    pairs = combine(flat.slice_dim(x, dim, 0, n - 1, 2), flat.slice_dim(x, dim, 1, n, 2))
    odd = running(pairs, combine, dim)
    even = flat.slice_dim(x, dim, 0, 1)
    if n > 2:
        rest = combine(flat.slice_dim(odd, dim, 0, (n - 1) // 2), flat.slice_dim(x, dim, 2, n, 2))
        even = flat.concatenate([even, rest], dim)
    return _interleave(even, odd, dim)


def _interleave(even, odd, dim):
    """even[0], odd[0], even[1], odd[1], ...: `even` may have one element more."""
    count = odd.shape[dim]
    last = flat.slice_dim(even, dim, count, even.shape[dim])
    pairs = [flat.unsqueeze(each, dim + 1) for each in (flat.slice_dim(even, dim, 0, count), odd)]
    shape = (*odd.shape[:dim], 2 * count, *odd.shape[dim + 1 :])
    joined = flat.reshape(flat.concatenate(pairs, dim + 1), shape)
    return flat.concatenate([joined, last], dim) if last.shape[dim] else joined


def scan_samples():
    return [
        S(T(3, 4), 0),
        S(T(3, 4), -1),
        S(T(2, 21), 1),
        S(T(40), 0),
        S(T(), 0),
        S(T(0, 3), 0),
        S(T(3, 0), 0),
    ]


def typed_scan_samples():
    return [*scan_samples(), S(T(3, 4), 1, dtype=dtypes.float64), S(finite(3, 4), 1, dtype=dtypes.int32)]


@op(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace=True,
    samples=typed_scan_samples,
    autocast="cuda: float32 result",
    open_stablehlo="running(self, dim, add, dtype)",
)
def cumsum(x, dim, dtype):
    """result[i] = x[0] + ... + x[i]; of integers and bools as int64."""
    x = counted(x, dtype)
    return flat.convert(_running_sum(widened(x), flat.axis(dim, x.rank)), x.dtype)


def _of_running_sum(cotangent, result, x, dim):
    """The running sum from the other end."""
    if not x.rank:
        return (cotangent,)
    return (flat.reverse(_running_sum(flat.reverse(cotangent, (dim,)), dim), (dim,)),)


def _doubling_sum(x, dim):
    """The running sum in rounds that add what lies 1, 2, 4, … before: more steps, but the same for all sizes
    up to a power of two."""
    reach = 1
    while x.rank and reach < x.shape[dim]:
        edge = [reach if d == dim else 0 for d in range(x.rank)]
        x = x + flat.pad(x, edge, [-each for each in edge])
        reach *= 2
    return x


@flat.differentiated(_of_running_sum, elsewhere={"open": _doubling_sum})
def _running_sum(x, dim):
    return running(x, flat.add, dim)


@op(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace=True,
    samples=typed_scan_samples,
    autocast="cuda: float32 result",
    open_stablehlo="running(self, dim, mul, dtype)",
)
def cumprod(x, dim, dtype):
    """result[i] = x[0] * ... * x[i]; of integers and bools as int64."""
    x = counted(x, dtype)
    return flat.convert(running(widened(x), flat.mul, flat.axis(dim, x.rank)), x.dtype)


def _running_extreme(name, x, kind, dim):
    """The running extreme and its last place. It is read from there, so its gradient goes there."""
    dim = flat.axis(dim, x.rank)
    if not x.rank or not x.numel:
        return x, flat.full(x.shape, 0, dtypes.int64)
    real(name, x)
    reached = flat.eq(x, running(x, flat.MONOIDS[kind], dim))
    if x.dtype.is_floating_point:
        reached = reached | flat.isnan(x)
    places = flat.where(reached, flat.iota(x.shape, dim, dtypes.int32), 0)
    places = running(places, flat.maximum, dim)
    return flat.take_along(x, places, dim), flat.convert(places, dtypes.int64)


@op(
    "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    samples=scan_samples,
    open_stablehlo="running_extreme(self, dim, maximum)",
)
def cummax(x, dim):
    """The largest element so far and its last place; once NaN, NaN."""
    return _running_extreme("cummax", x, "max", dim)


@op(
    "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    samples=scan_samples,
    open_stablehlo="running_extreme(self, dim, minimum)",
)
def cummin(x, dim):
    """The smallest element so far and its last place; once NaN, NaN."""
    return _running_extreme("cummin", x, "min", dim)


def positive_scan_samples():
    # Complex logarithms are defined up to a multiple of 2 pi; of sums of these there is no doubt.
    calls = [((3, 4), 0), ((2, 21), 1), ((40,), 0), ((), 0), ((0, 3), 0)]
    return [S(T(*shape, low=0, high=1), dim) for shape, dim in calls]


@op(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    samples=positive_scan_samples,
    open_stablehlo="running(self, dim, logaddexp)",
)
def logcumsumexp(x, dim):
    """result[i] = log(exp(x[0]) + ... + exp(x[i]))"""
    inexact("logcumsumexp", x)
    dim = flat.axis(dim, x.rank)
    wide = widened(x)
    if x.dtype.is_complex:
        return flat.convert(running(_of_known_phase(wide), _log_add_exp_complex, dim), x.dtype)
    wide = _undefined_at_infinities(wide, dim)
    return flat.convert(running(wide, _log_add_exp, dim), x.dtype)


def _of_known_phase(x):
    """Complex logarithms of which none has two forms: zero's is -inf + 0j, and NaN has it in both parts."""
    unknown = flat.ne(x, x)
    zero = flat.eq(flat.real(x), -math.inf)
    return flat.where(unknown, complex(math.nan, math.nan), flat.where(zero, -math.inf, x))


def _of_infinities(cotangent, result, x, dim):
    """NaN for elements whose own sum is infinite with them: infinities, and -inf with nothing but -inf before
    it. There exp(x - result), by which PyTorch multiplies, is that of a difference of infinities."""
    nothing_yet = running(flat.eq(x, -math.inf), flat.logical_and, dim)
    return (flat.where(flat.eq(x, math.inf) | nothing_yet, math.nan, cotangent),)


@flat.differentiated(_of_infinities)
def _undefined_at_infinities(x, dim):
    return x


def _log_add_exp_complex(a, b):
    of_a, of_b = flat.real(a), flat.real(b)
    first = flat.ge(of_a, of_b)
    top, bottom = flat.where(first, a, b), flat.where(first, b, a)
    zeros = flat.eq(of_a, -math.inf) & flat.eq(of_b, -math.inf)
    infinite = flat.eq(of_a, math.inf) & flat.eq(of_b, math.inf)
    gap = flat.where(zeros | infinite, 0, bottom - top)
    none = flat.eq(flat.real(gap), -math.inf)  # exp is 0, whatever the phase
    small = flat.log1p(flat.where(none, 0, flat.exp(flat.where(none, 0, gap))))
    large = flat.log(flat.exp(flat.where(infinite, a, 0)) + flat.exp(flat.where(infinite, b, 0)))
    return flat.where(zeros, a, flat.where(infinite, large, top + small))


def _log_add_exp(a, b):
    first = flat.ge(a, b)
    top, bottom = flat.where(first, a, b), flat.where(first, b, a)
    # Where both are the same infinity their difference is NaN, and the answer is that infinity.
    same = flat.eq(a, b) & flat.isinf(a)
    return flat.where(same, a, top + flat.log1p(flat.exp(flat.where(same, 0, bottom - top))))


@op(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    promote=common,
    samples=lambda: [
        S(finite(3, 4)), S(finite(3, 4), 2), S(finite(3, 4), 1, 0), S(T(3, 4), 0), S(T(3, 4), 9), S(T(0)),
        S(finite(5), prepend=finite(2), append=finite(1)), S(finite(3, 4), 2, 0, finite(1, 4)),
    ],
)  # fmt: skip
def diff(x, n, dim, prepend, append):
    """The n-th difference along a dimension: x[i + 1] - x[i], n times over."""
    if not x.rank:
        raise ShapeError("diff needs at least one dimension")
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, not {n}")
    dim = flat.axis(dim, x.rank)
    parts = [each for each in (prepend, x, append) if each is not None]
    x = flat.concatenate(parts, dim) if n else x
    for _ in range(min(n, x.shape[dim])):
        left, right = _neighbours(x, dim)
        x = left ^ right if x.dtype.kind == "bool" else right - left
    return x


def _neighbours(x, dim):
    """x without its last, and x without its first along a dimension; both empty if x has at most one."""
    n = x.shape[dim]
    return flat.slice_dim(x, dim, 0, max(n - 1, 0)), flat.slice_dim(x, dim, min(1, n), n)


# The trapezoidal rule


def _sampled(y, dim):
    if not y.rank:
        raise ShapeError("the trapezoidal rule needs at least one dimension")
    return flat.axis(dim, y.rank)


def _halved(x):
    x = flat.convert(x, floating(x.dtype))
    return x * 0.5


def _areas(y, widths, dim):
    """Twice the area over each interval. Sums and widths have their own dtypes until they meet."""
    left, right = _neighbours(y, dim)
    dtype = result_dtype((y, widths))
    return flat.convert(left + right, dtype) * flat.convert(widths, dtype)


def _steps(name, y, x, dim):
    if "bool" in (y.dtype.kind, x.dtype.kind):
        raise DTypeError(f"{name} is not defined for bool tensors")
    if x.rank == 1:
        if x.shape[0] != y.shape[dim]:
            raise ShapeError(f"{name}: {x.shape[0]} places do not fit dimension {dim} of {y.type}")
        x = flat.reshape(x, [-1 if d == dim else 1 for d in range(y.rank)])
    elif x.rank < y.rank:
        x = flat.reshape(x, (1,) * (y.rank - x.rank) + x.shape)
    left, right = _neighbours(x, dim)
    return right - left


def _number(name, y, dx):
    if y.dtype.kind == "bool" or isinstance(dx, bool):
        raise DTypeError(f"{name} is not defined for bool tensors and numbers")


def _nothing(y, dim):
    return flat.stop_gradient(flat.full([n for d, n in enumerate(y.shape) if d != dim], 0, y.dtype))


def dx_samples():
    return [
        S(finite(3, 4)),
        S(finite(3, 4), dx=2),
        S(finite(3, 4), dx=0.5, dim=0),
        S(finite(1)),
        S(finite(20)),
        S(T(2, 0)),
    ]


def x_samples():
    # PyTorch rounds narrow floats after each step: sums that may cancel are compared in float32.
    calls = [
        (finite(3, 4, dtype="float32"), finite(4, dtype="float32"), -1),
        (finite(3, 4, dtype="float32"), finite(3), 0),
        (finite(2, 3, 4, dtype="int32"), finite(3, 4), -1),
        (T(2, 3, low=0.5, high=3), finite(2, 1), 0),
        (finite(1), finite(1), 0),
        (T(2, 0), T(0), 1),
    ]
    return [S(y, x, dim=dim) for y, x, dim in calls]


@op(
    "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    samples=x_samples,
)
def trapezoid(y, x, dim):
    """The integral of y over places x by the trapezoidal rule."""
    dim = _sampled(y, dim)
    if not y.shape[dim]:
        return _nothing(y, dim)
    return _halved(sum_dims(_areas(y, _steps("trapezoid", y, x, dim), dim), dim, False, None))


@op("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", samples=dx_samples)
@op("trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor", samples=dx_samples)
def trapezoid_dx(y, dx, dim):
    """The integral of y over places dx apart by the trapezoidal rule."""
    dim = _sampled(y, dim)
    n = y.shape[dim]
    if not n:
        return _nothing(y, dim)
    _number("trapezoid", y, dx)
    ends = [flat.squeeze(flat.slice_dim(y, dim, i, i + 1), dim) for i in (0, n - 1)]
    total = sum_dims(y, dim, False, None)
    return (flat.convert(total, floating(y.dtype)) - _halved(ends[0] + ends[1])) * dx


@op("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", samples=x_samples)
def cumulative_trapezoid(y, x, dim):
    """The running integral of y over places x by the trapezoidal rule."""
    dim = _sampled(y, dim)
    return _halved(cumsum(_areas(y, _steps("cumulative_trapezoid", y, x, dim), dim), dim, None))


@op("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", samples=dx_samples)
def cumulative_trapezoid_dx(y, dx, dim):
    """The running integral of y over places dx apart by the trapezoidal rule."""
    dim = _sampled(y, dim)
    _number("cumulative_trapezoid", y, dx)
    left, right = _neighbours(y, dim)
    return _halved(cumsum(left + right, dim, None)) * dx
