"""The incomplete gamma functions, regularized: by series and continued fractions, for large arguments by the
normal distribution that they become."""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.ops.precision import doubled
from tenfold.ops.promote import common
from tenfold.ops.samples import S, T
from tenfold.ops.special import lgamma, lgamma_beside_one
from tenfold.ops.table import op
from tenfold.ops.undifferentiable import undifferentiable


def _shapes():
    pairs = [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1), ()), ((0, 3), (3,))]
    large = T(4, 5, low=1e10, high=1.00001e10, dtype="float64")
    return [S(T(*a, low=0.1, high=20), T(*x, low=0.0, high=30)) for a, x in pairs] + [
        S(T(4, 5, low=-3, high=3), T(4, 5, low=-3, high=3)),
        S(large, large),
    ]


@op("igamma(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True, samples=_shapes)
@op("special_gammainc(Tensor self, Tensor other) -> Tensor", promote=common, method=False, samples=_shapes)
def igamma(a, x):
    """The regularized lower incomplete gamma function P(self, other)"""
    return _lower_gamma(*_gamma_arguments(a, x))


@op("igammac(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True, samples=_shapes)
@op("special_gammaincc(Tensor self, Tensor other) -> Tensor", promote=common, method=False, samples=_shapes)
def igammac(a, x):
    """The regularized upper incomplete gamma function Q(self, other)"""
    return _upper_gamma(*_gamma_arguments(a, x))


def _gamma_arguments(a, x):
    a, x = flat.broadcast(a, x)
    return undifferentiable(a, "the first argument of the incomplete gamma function"), x


def density(a, x):
    """What the lower function grows by: x^(a - 1) * exp(-x) / gamma(a)."""
    return flat.exp((a - 1) * flat.log(x) - x - lgamma(a))


@flat.differentiated(lambda ct, result, a, x: (flat.full_like(a, 0), ct * density(a, x)))
def _lower_gamma(a, x):
    return incomplete_gamma(a, x)[0]


@flat.differentiated(lambda ct, result, a, x: (flat.full_like(a, 0), -(ct * density(a, x))))
def _upper_gamma(a, x):
    return incomplete_gamma(a, x)[1]


@doubled
def incomplete_gamma(a, x):
    """P and Q = 1 - P: by P's power series below a + 1, by Q's continued fraction above."""
    a, x = flat.broadcast(a, x)
    if not a.dtype.is_floating_point:
        raise DTypeError(f"the incomplete gamma function is not defined for {a.dtype.name}")
    plain = (a > 0) & (x > 0) & flat.is_finite(a) & flat.is_finite(x)
    one, nan = flat.full_like(a, 1), flat.full_like(a, math.nan)
    large = plain & (a > _LARGE)
    a_, x_ = [flat.where(plain & flat.invert(large), each, 1) for each in (a, x)]
    by_series = x_ < a_ + 1
    factor = flat.exp(a_ * flat.log(x_) - x_ - flat.lgamma(a_))
    lower = factor * _gamma_series(a_, flat.where(by_series, x_, 0))
    upper = factor * _gamma_fraction(a_, flat.where(by_series, a_ + 1, x_))
    p, q = flat.where(by_series, lower, 1 - upper), flat.where(by_series, 1 - lower, upper)
    # Where P is near one, the difference has few digits left.
    near_one = (x_ <= 1.1) & (a_ <= flat.where(x_ <= 0.5, -0.4 / flat.log(x_), 1.1 * x_))
    q = flat.where(near_one, _upper_series(a_, flat.where(near_one, x_, 1)), q)
    far_p, far_q = _nearly_normal(flat.where(large, a, one), flat.where(large, x, one))
    p, q = flat.where(large, far_p, p), flat.where(large, far_q, q)
    # Where one of the two is 0 or infinite, P is a step.
    zero, infinite = flat.eq(x, 0), flat.isinf(x)
    at_infinity = flat.where(flat.isinf(a), flat.where(infinite, nan, 0), flat.where(infinite, one, nan))
    step = flat.where(flat.eq(a, 0), flat.where(x > 0, one, nan), flat.where(zero, 0, at_infinity))
    step = flat.where((a < 0) | (x < 0), nan, step)
    return flat.where(plain, p, step), flat.where(plain, q, 1 - step)


# Above it the loops would take too many steps.
_LARGE = 1e6


def _nearly_normal(a, x):
    """P and Q for large a, by the first terms of Temme's expansion (DLMF 8.12)."""
    off = x / a - 1
    half = flat.maximum(off - flat.log1p(off), 0)
    distance = flat.where(off < 0, -1.0, flat.full_like(a, 1)) * flat.sqrt(2 * half)
    near = flat.abs(off) < 0.01
    series = ((distance / 864 - 2 / 135) * distance + 1 / 12) * distance - 1 / 3
    apart = 1 / flat.where(near, 1, off) - 1 / flat.where(near, 1, distance)
    rest = flat.exp(-a * half) / flat.sqrt(a * (2 * math.pi)) * flat.where(near, series, apart)
    scaled = distance * flat.sqrt(a * 0.5)
    return 0.5 * flat.erfc(-scaled) - rest, 0.5 * flat.erfc(scaled) + rest


# A little above rounding: at 2**-53 noise keeps the loops going to their limit.
_LIMIT, _EPSILON = 10000, 2.0**-50


def _gamma_series(a, x):
    """The sum over n of x^n / (a (a + 1) ... (a + n))."""

    def unsettled(count, x, n, term, total):
        return (count < _LIMIT) & flat.reduce(term > _EPSILON * total, "or")

    def step(count, x, n, term, total):
        term = term * x / (n + 1)
        return count + 1, x, n + 1, term, total + term

    first = 1 / a
    return flat.while_loop(unsettled, step, (flat.constant(0, dtypes.int32), x, a, first, first))[-1]


def _upper_series(a, x):
    """Q for small a and x: 1 - x^a / gamma(a + 1) without its cancellation, less x^a / gamma(a) times the sum
    over n > 0 of (-x)^n / (n! (a + n))."""
    logarithm = a * flat.log(x) - lgamma_beside_one(a)
    term = total = flat.full_like(a, 0)
    for n in range(1, 21):
        term = flat.neg(x) if n == 1 else term * flat.neg(x) / n
        total = total + term / (a + n)
    return flat.neg(flat.expm1(logarithm)) - a * flat.exp(logarithm) * total


def _gamma_fraction(a, x):
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), by Lentz's method."""

    def unsettled(count, a, i, odd, above, below, change, value):
        return (count < _LIMIT) & flat.reduce(flat.abs(change - 1) > _EPSILON, "or")

    def step(count, a, i, odd, above, below, change, value):
        numerator = i * (a - i)
        odd = odd + 2
        below = 1 / (numerator * below + odd)
        above = odd + numerator / above
        change = above * below
        return count + 1, a, i + 1, odd, above, below, change, value * change

    odd = x + 1 - a
    one = flat.full_like(a, 1)
    carry = (flat.constant(0, dtypes.int32), a, one, odd, flat.full_like(a, 1e300), 1 / odd, one * 2, 1 / odd)
    return flat.while_loop(unsettled, step, carry)[-1]
