"""Special functions of probability and analysis: the error function's family, entropies, zeta and gamma."""

import functools
import math

from tenfold import flat
from tenfold.base.errors import ArgumentError, DTypeError
from tenfold.ops.bessel import EULER, polynomial
from tenfold.ops.precision import doubled, widened
from tenfold.ops.promote import to_float
from tenfold.ops.samples import S, T
from tenfold.ops.table import op
from tenfold.ops.undifferentiable import undifferentiable


def _real(names, arguments):
    """Integers become floats; complex numbers are refused."""
    promoted = to_float(names, arguments)
    for each in promoted:
        if isinstance(each, flat.Value) and each.dtype.is_complex:
            raise DTypeError("this function is not defined for complex numbers")
    return promoted


def _unary(build, name, *specials, forms="", **facts):
    """Rows for a function of one real number: `name` for tensors too, the rest in torch.special."""
    if name:
        op(f"{name}(Tensor self) -> Tensor", promote=_real, inplace=True, forms=forms, **facts)(build)
    if specials:
        schemas = [f"special_{special}(Tensor self) -> Tensor" for special in specials]
        op(*schemas, promote=_real, method=False, **facts)(build)


_ERF = "2 / sqrt(pi) * the integral of exp(-t ** 2) from 0 to self"
_unary(widened(flat.erf), "erf", forms="function_ foreach", meaning=_ERF)
_unary(widened(flat.erf), None, "erf", torch_dialect="erf(self)", meaning=_ERF)
_unary(
    widened(flat.erfc),
    "erfc",
    "erfc",
    forms="function_ foreach",
    torch_dialect="erfc_by_erf",
    meaning="1 - erf(self), accurate where that is near zero",
)
_unary(
    widened(flat.erfinv),
    "erfinv",
    "erfinv",
    autocast="cuda: float32",
    meaning="The x of erf(x) = self, which is from -1 to 1",
    saves="other",
)


# The normal distribution


@doubled
def erfcx(x):
    """exp(self ** 2) * erfc(self)"""
    # The trapezoidal rule for (2 x / pi) * integral of exp(-s^2) / (x^2 + s^2) errs by exp(-2 pi x / step).
    step, inverse = 0.2, 1 / flat.where(x < 1, 1, x)
    square = inverse * inverse
    total = flat.full_like(x, step / 2)
    for j in range(1, 32):
        s = (j * step) ** 2
        total = total + step * math.exp(-s) / (1 + s * square)
    return flat.where(x < 1, _erfcx_below(flat.where(x < 1, x, 1)), total * inverse * (2 / math.pi))


def _of_erfcx(cotangent, result, x):
    return (cotangent * (2 * x * result - 2 / math.sqrt(math.pi)),)


@flat.differentiated(_of_erfcx)
def _erfcx_below(x):
    return flat.exp(x * x) * flat.erfc(x)


_unary(erfcx, None, "erfcx")


@widened
def ndtr(x):
    """The normal distribution: erfc(-self / sqrt(2)) / 2"""
    return 0.5 * flat.erfc(x * -math.sqrt(0.5))


def _ndtr_samples():
    # Below zero PyTorch's half types lose digits: 1 + erf(x) cancels.
    return [S(T(3, 4, dtype="float32")), S(T(3, 4, dtype="float64")), S(T(3, 4, low=0, high=9)), S(T(0, 3))]


op("special_ndtr(Tensor self) -> Tensor", promote=_real, method=False, samples=_ndtr_samples)(ndtr)


@doubled
def log_ndtr(x):
    """The logarithm of the normal distribution, also where that is too small for a float"""
    scaled = x * math.sqrt(0.5)
    below = x < -1
    size = flat.where(below, flat.neg(scaled), 1)
    left = flat.log(erfcx(size) * 0.5) - size * size
    return flat.where(below, left, flat.log1p(flat.erfc(flat.where(below, 0, scaled)) * -0.5))


_unary(log_ndtr, None, "log_ndtr")


def _of_ndtri(cotangent, result, p):
    return (cotangent * flat.exp(result * result * 0.5) * math.sqrt(2 * math.pi),)


@doubled
@flat.differentiated(_of_ndtri)
def ndtri(p):
    """The inverse of the normal distribution"""
    tail = flat.minimum(p, 1 - p)
    inside = tail > 0
    logarithm = flat.log(flat.where(inside, tail, 0.5))
    # A guess good to three digits (Abramowitz and Stegun 26.2.23), then Newton's steps on the logarithm.
    t = flat.sqrt(-2 * logarithm)
    above = (0.010328 * t + 0.802853) * t + 2.515517
    below = ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1
    x = above / below - t
    for _ in range(3):
        value = log_ndtr(x)
        slope = flat.exp(-0.5 * (x * x) - value) / math.sqrt(2 * math.pi)
        x = x - (value - logarithm) / slope
    x = flat.where(p > 0.5, flat.neg(x), x)
    edge = flat.where(
        flat.eq(p, 0), flat.full_like(p, -math.inf), flat.where(flat.eq(p, 1), math.inf, math.nan * p)
    )
    return flat.where(inside, x, edge)


op(
    "special_ndtri(Tensor self) -> Tensor",
    promote=_real,
    method=False,
    samples=lambda: [S(T(3, 4, low=0.0, high=1.0)), S(T(3, 4)), S(T()), S(T(0, 3))],
)(ndtri)


# Entropies and products with logarithms


@widened
@flat.differentiated(lambda cotangent, result, x: (cotangent * (-1 - flat.log(x)),))
def entr(x):
    """-self * log(self), 0 at zero and -inf below"""
    positive = x > 0
    inside = flat.where(positive, x, 1)
    outside = flat.where(flat.eq(x, 0), flat.full_like(x, 0), -math.inf)
    return flat.where(flat.isnan(x), x, flat.where(positive, flat.neg(inside * flat.log(inside)), outside))


_unary(entr, None, "entr")


def _times_log(x, y, shift):
    """x * log(shift + y), and 0 where x is 0."""
    return _product_with_log(*flat.broadcast(x, y), shift)


@widened
def _log(y, shift):
    return flat.log1p(y) if shift else flat.log(y)


def _of_product_with_log(cotangent, result, x, y, shift):
    """Where x is 0 the logarithm counts only if there is one."""
    dead = flat.eq(x, 0) & flat.le(y, -shift)
    logarithm = flat.where(dead, 0, _log(flat.where(dead, 1, y), shift))
    return cotangent * logarithm, cotangent * x / (y + shift)


@flat.differentiated(_of_product_with_log)
def _product_with_log(x, y, shift):
    """In half types the logarithm is rounded before the product, as PyTorch's kernels do."""
    return flat.where(flat.isnan(y), y, flat.where(flat.eq(x, 0), 0, x * _log(y, shift)))


@op(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    promote=_real,
    inplace=True,
    forms="function_",
    torch_dialect="times_log",
)
@op(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
    promote=_real,
    method=False,
    forms="function_",
    torch_dialect="times_log",
)
@op(
    "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
    promote=_real,
    inplace=True,
    forms="function_",
    torch_dialect="times_log",
)
@op(
    "special_xlogy(Tensor self, Tensor other) -> Tensor",
    promote=_real,
    method=False,
    torch_dialect="times_log",
)
@op(
    "special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor",
    promote=_real,
    method=False,
    torch_dialect="times_log",
)
@op(
    "special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor",
    promote=_real,
    method=False,
    torch_dialect="times_log",
)
def xlogy(x, y):
    """self * log(other), and 0 where self is 0"""
    return _times_log(x, y, 0)


@op(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    promote=_real,
    method=False,
    torch_dialect="times_log1p",
)
@op(
    "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
    promote=_real,
    method=False,
    torch_dialect="times_log1p",
)
@op(
    "special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
    promote=_real,
    method=False,
    torch_dialect="times_log1p",
)
def xlog1py(x, y):
    """self * log(1 + other), and 0 where self is 0"""
    return _times_log(x, y, 1)


# Zeta and gamma


def _arguments():
    return [
        S(T(3, 4, low=1.5, high=9), T(3, 4, low=0.25, high=9)),
        S(T(), T()),
        S(T(0, 3), T(3)),
        S(T(3, 4), T(4)),
    ]


@op("special_zeta(Tensor self, Tensor other) -> Tensor", promote=_real, method=False, samples=_arguments)
@op(
    "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
    "special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor",
    promote=_real,
    method=False,
    samples=lambda: [
        S(3, T(3, 4, low=0.25, high=9)),
        S(T(3, 4, low=1.5, high=9), 2.5),
        S(T(4), 1),
        S(2, T(0, 3)),
    ],
)
@doubled
def zeta(x, q):
    """Hurwitz's zeta function: the sum over k of (k + other) ** -self"""
    x, q = flat.broadcast(x, q)
    return _zeta(undifferentiable(x, "the exponent of zeta"), q)


def _of_zeta(cotangent, result, x, q):
    return flat.full_like(x, 0), cotangent * -x * _zeta(x + 1, q)


@flat.differentiated(_of_zeta)
def _zeta(x, q):
    undefined = (x < 1) | ((q <= 0) & flat.ne(x, flat.floor(x)))
    pole = (x >= 1) & (flat.eq(x, 1) | ((q <= 0) & flat.eq(q, flat.floor(q))))
    plain = flat.invert(undefined | pole) & flat.is_finite(x) & flat.is_finite(q)
    x_, q_ = flat.where(plain, x, 2), flat.where(plain, q, 1)

    def negative(x, q, total):
        return flat.reduce(q <= 0, "or")

    def step(x, q, total):
        below = q <= 0
        term = flat.power(flat.where(below, q, 1), flat.neg(x))
        return x, flat.where(below, q + 1, q), flat.where(below, total + term, total)

    _, q_, head = flat.while_loop(negative, step, (x_, q_, flat.full_like(x, 0)))
    value = head + flat.zeta(x_, q_)
    at_infinity = flat.where(q < 1, flat.full_like(x, math.inf), flat.where(flat.eq(q, 1), 1, x * math.nan))
    value = flat.where(flat.isinf(x), at_infinity, flat.where(flat.is_finite(q), value, math.nan))
    value = flat.where(flat.isnan(x), x, value)
    return flat.where(pole, math.inf, flat.where(undefined, math.nan, value))


# XLA's own derivatives are wrong at zero and below.


@widened
@flat.differentiated(lambda cotangent, result, x: (cotangent * _trigamma(x),))
def digamma(x):
    """The derivative of lgamma"""
    return flat.where(flat.eq(x, 0), -1 / x, flat.digamma(x))


_unary(digamma, "digamma", "digamma", "psi")


@widened
@flat.differentiated(lambda cotangent, result, x: (cotangent * digamma(x),))
def lgamma(x):
    """The logarithm of the gamma function's size"""
    # XLA's errs by a little of 1, which is much of the little it is near its zeros, 1 and 2: a series there.
    upper = x > 1.5
    away = flat.where(upper, x - 2, x - 1)
    coefficients = _lgamma_at_two(28 if x.dtype.itemsize > 4 else 14)
    series = away * polynomial(away, coefficients)
    near = flat.where(upper, series, series - flat.log1p(away))
    return flat.where((x > 0.5) & (x < 2.5), near, flat.lgamma(x))


def lgamma_beside_one(x):
    """lgamma(1 + x), with all digits of a small x."""
    small = flat.abs(x) <= 0.5
    near = flat.where(small, x, 0)
    series = near * polynomial(near, _lgamma_at_two(28 if x.dtype.itemsize > 4 else 14)) - flat.log1p(near)
    return flat.where(small, series, flat.lgamma(1 + x))


@functools.cache
def _lgamma_at_two(count):
    """The coefficients of lgamma(2 + x) / x: 1 - γ, and (-1)^k (ζ(k) - 1) / k for k from 2."""
    return [1 - EULER, *[(-1) ** k * _zeta_past_one(k) / k for k in range(2, count)]]


def _zeta_past_one(k):
    """ζ(k) - 1: the sum of n^-k for n from 2, its tail by the formula of Euler and Maclaurin."""
    n = 40.0
    tail = n ** (1 - k) / (k - 1) + n**-k / 2 + k * n ** -(k + 1) / 12
    tail -= k * (k + 1) * (k + 2) * n ** -(k + 3) / 720
    tail += math.prod(range(k, k + 5)) * n ** -(k + 5) / 30240
    return math.fsum([*[i**-k for i in range(2, 40)], tail])


_unary(lgamma, "lgamma", "gammaln", forms="foreach")


def _orders():
    return [S(n, T(3, 4, low=0.25, high=9)) for n in (0, 1, 2, 5)] + [S(2, T()), S(1, T(0, 3))]


@op("polygamma(int n, Tensor self) -> Tensor", promote=_real, inplace=True, method=True, samples=_orders)
@op("special_polygamma(int n, Tensor self) -> Tensor", promote=_real, method=False, samples=_orders)
@widened
def polygamma(n, x):
    """The n-th derivative of digamma"""
    if n < 0:
        raise ArgumentError(f"polygamma needs an order n that is not negative, not {n}")
    if n == 0:
        return digamma(x)
    if n == 1:
        return _trigamma(x)
    return zeta(flat.full_like(x, n + 1), x) * (math.factorial(n) * (-1.0) ** (n + 1))


def _trigamma(x):
    """By reflection below 1/2: the sum there starts at a pole. XLA's has no limit at infinity."""
    below, endless = x < 0.5, flat.eq(x, math.inf)
    sine = flat.sin(flat.where(below, x, 0.5) * math.pi)
    value = flat.zeta(2, flat.where(below, 1 - x, flat.where(endless, 1, x)))
    return flat.where(below, math.pi**2 / (sine * sine) - value, flat.where(endless, 0, value))


def _not_bool(names, arguments):
    if arguments[0].dtype.kind == "bool":
        raise DTypeError("mvlgamma is not defined for bool", help="convert to a float dtype first")
    return _real(names, arguments)


def _dimensions():
    return [S(T(3, 4, low=3, high=9), p) for p in (1, 2, 5)] + [S(T(0, 3), 1)]


@op("mvlgamma(Tensor self, int p) -> Tensor", promote=_not_bool, inplace=True, samples=_dimensions)
@op(
    "special_multigammaln(Tensor self, int p) -> Tensor", promote=_not_bool, method=False, samples=_dimensions
)
@widened
def mvlgamma(x, p):
    """The logarithm of the p-dimensional gamma function"""
    if p < 1:
        raise ArgumentError(f"mvlgamma needs a dimension p of at least 1, not {p}")
    total = flat.full_like(x, p * (p - 1) / 4 * math.log(math.pi))
    for j in range(p):
        total = total + lgamma(x - j / 2)
    return total
