"""Bessel functions of orders 0 and 1, plain and modified, and Airy's function.

Power series near zero; further out integrals of exp(-s^2) times a slowly varying factor along paths of
steepest descent, by the trapezoidal rule, which converges exponentially there. All in float64, good to 1e-11.
"""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.ops.precision import doubled
from tenfold.ops.promote import to_float
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

EULER = 0.57721566490153286061
STEP = 0.4
# Nodes s^2 and weights of the integral of exp(-s^2) f(s) over s > 0.
NODES = [((j * STEP) ** 2, STEP * math.exp(-((j * STEP) ** 2)) * (0.5 if j == 0 else 1)) for j in range(16)]


def _rows(name, argument="self", plain=False, between=((0, 40),)):
    """Declare a function of one real number in torch.special, and where `plain` as a tensor's method too.

    Tests sample it `between` such limits.
    """

    def samples():
        return [S(T(5, 6, low=low, high=high)) for low, high in between] + [S(T(0, 3)), S(T(low=0.1, high=2))]

    def declare(build):
        build = doubled(build)
        # PyTorch differentiates only these.
        flows = name in ("i0", "i0e", "i1", "i1e")
        facts = {"promote": _real, "method": False, "samples": samples, "differentiable": flows}
        op(f"special_{name}(Tensor {argument}) -> Tensor", **facts)(build)
        if plain:
            op(
                f"{name}(Tensor self) -> Tensor",
                promote=_real,
                inplace=True,
                samples=samples,
                forms="function_",
            )(build)
        return build

    return declare


def _real(names, arguments):
    (x,) = to_float(("self",), arguments)
    if x.dtype.is_complex:
        raise DTypeError("Bessel functions are not defined here for complex numbers")
    return [x]


def polynomial(x, coefficients):
    """The sum of coefficients[k] * x^k."""
    total = flat.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _series(order, sign, count=50):
    """Coefficients of J (sign -1) or I (sign 1) over (x / 2)^order, in powers of x^2 / 4."""
    return [sign**k / (math.factorial(k) * math.factorial(k + order)) for k in range(count)]


def _second_series(order, sign, count=50):
    """The like for Y and K, whose terms have harmonic numbers as factors: psi(k + 1) + psi(k + order + 1)."""
    harmonic = [0.0]
    for k in range(1, count + 2):
        harmonic.append(harmonic[-1] + 1 / k)
    psi = [harmonic[k] + harmonic[k + order] - 2 * EULER for k in range(count)]
    return [each * factor for each, factor in zip(psi, _series(order, sign, count), strict=True)]


def _hankel(order, x):
    """J and Y for x from 5 on: sqrt(2 / (pi x)) * exp(i (x - order pi / 2 - pi / 4)) * (p + i q)."""
    p = q = flat.full_like(x, 0)
    for square, weight in NODES:
        r = square * 0.5 / x
        size = flat.sqrt(1 + r * r)
        # a - i b = (1 + i r)^(-1/2)
        a = flat.sqrt((size + 1) * 0.5) / size
        b = r / (flat.sqrt((size + 1) * 2) * size)
        if order:
            a, b = a + 2 * (r * b), b - 2 * (r * a)
        p, q = p + weight * a, q - weight * b
    scale = flat.rsqrt(x) * (2 / math.pi)
    cos, sin = flat.cos(x), flat.sin(x)
    # cos and sin of x - pi / 4, or of x - 3 pi / 4, times sqrt(2)
    cos, sin = (sin - cos, flat.neg(sin + cos)) if order else (cos + sin, sin - cos)
    return scale * (cos * p - sin * q), scale * (sin * p + cos * q)


def _first_kind(order, x):
    size = flat.abs(x)
    near = size < 5
    small = flat.where(near, size, 1)
    series = polynomial(small * small * 0.25, _series(order, -1, 30))
    if order:
        series = series * small * 0.5
    value = flat.where(near, series, _hankel(order, flat.where(near, 5, size))[0])
    value = flat.where(flat.isnan(x), x, value)
    return flat.where(x < 0, flat.neg(value), value) if order else value


def _second_kind(order, x):
    near = x < 5
    small = flat.where(near & (x > 0), x, 1)
    square = small * small * 0.25
    plain, harmonic = (
        polynomial(square, _series(order, -1, 30)),
        polynomial(square, _second_series(order, -1, 30)),
    )
    logarithm = 2 * flat.log(small * 0.5)
    if order:
        series = small * 0.5 * (logarithm * plain - harmonic) / math.pi - 2 / math.pi / small
    else:
        series = (logarithm * plain - harmonic) / math.pi
    value = flat.where(near, series, _hankel(order, flat.where(near, 5, x))[1])
    return _at_edges(x, value, -math.inf)


def _at_edges(x, value, at_zero):
    """The value where x > 0, `at_zero` at zero and NaN below."""
    edge = flat.where(flat.eq(x, 0), flat.full_like(x, at_zero), math.nan)
    return flat.where(x > 0, value, edge)


PRECISE = {"between": ((0, 4.5), (12, 60))}  # elsewhere PyTorch's values are off by up to 1e-6


@_rows("bessel_j0", **PRECISE)
def bessel_j0(x):
    """The Bessel function of the first kind of order 0"""
    return _first_kind(0, x)


@_rows("bessel_j1", **PRECISE)
def bessel_j1(x):
    """The Bessel function of the first kind of order 1"""
    return _first_kind(1, x)


@_rows("bessel_y0", **PRECISE)
def bessel_y0(x):
    """The Bessel function of the second kind of order 0"""
    return _second_kind(0, x)


@_rows("bessel_y1", **PRECISE)
def bessel_y1(x):
    """The Bessel function of the second kind of order 1"""
    return _second_kind(1, x)


@_rows("spherical_bessel_j0", "x")
def spherical_bessel_j0(x):
    """sin(x) / x"""
    plain = flat.ne(x, 0) & flat.invert(flat.isinf(x))
    angle = flat.where(plain, x, 1)
    return flat.where(plain, flat.sin(angle) / angle, flat.convert(flat.eq(x, 0), x.dtype))


# Modified


def _first_scaled(order, x):
    """I of an order times exp(-|x|)."""
    size = flat.abs(x)
    near = size < 20
    small = flat.where(near, size, 1)
    series = polynomial(small * small * 0.25, _series(order, 1)) * flat.exp(flat.neg(small))
    if order:
        series = series * small * 0.5
    inverse = 1 / flat.where(near, 20, size)
    total = flat.full_like(x, 0)
    for square, weight in NODES:
        factor = weight * flat.rsqrt(1 - square * 0.5 * inverse)
        total = total + (factor * (1 - square * inverse) if order else factor)
    value = flat.where(near, series, total * flat.sqrt(inverse) * (math.sqrt(2) / math.pi))
    value = flat.where(flat.isnan(x), x, value)
    return flat.where(x < 0, flat.neg(value), value) if order else value


def _unscaled(scaled, x):
    root = flat.exp(flat.abs(x) * 0.5)
    return flat.where(flat.isinf(x), x * flat.sign(scaled) * flat.sign(x), scaled * root * root)


def _of_first(cotangent, result, x):
    return (cotangent * i1(x),)


def _of_second(cotangent, result, x):
    return (cotangent * _less_quotient(i0(x), result, x),)


def _of_first_scaled(cotangent, result, x):
    return (cotangent * (i1e(x) - flat.sign(x) * result),)


def _of_second_scaled(cotangent, result, x):
    return (cotangent * (_less_quotient(i0e(x), result, x) - flat.sign(x) * result),)


def _less_quotient(zeroth, first, x):
    """I0 - I1 / x, and its limit at 0."""
    tiny = flat.abs(x) < dtypes.finfo(x.dtype).eps
    return flat.where(tiny, 0.5, zeroth - first / flat.where(tiny, 1, x))


@_rows("i0e")
@flat.differentiated(_of_first_scaled)
def i0e(x):
    """exp(-|self|) * i0(self)"""
    return _first_scaled(0, x)


@_rows("i1e")
@flat.differentiated(_of_second_scaled)
def i1e(x):
    """exp(-|self|) * i1(self)"""
    return _first_scaled(1, x)


@_rows("modified_bessel_i0")
@_rows("i0", plain=True)
@flat.differentiated(_of_first)
def i0(x):
    """The modified Bessel function of the first kind of order 0"""
    return _unscaled(_first_scaled(0, x), x)


@_rows("modified_bessel_i1")
@_rows("i1")
@flat.differentiated(_of_second)
def i1(x):
    """The modified Bessel function of the first kind of order 1"""
    return _unscaled(_first_scaled(1, x), x)


def _second_scaled(order, x):
    """K of an order times exp(x)."""
    near = x < 2
    small = flat.where(near & (x > 0), x, 1)
    square = small * small * 0.25
    plain, harmonic = (
        polynomial(square, _series(order, 1, 20)),
        polynomial(square, _second_series(order, 1, 20)),
    )
    series = 0.5 * harmonic - flat.log(small * 0.5) * plain
    if order:
        series = 1 / small - small * 0.5 * series
    inverse = 1 / flat.where(near, 2, x)
    total = flat.full_like(x, 0)
    for node, weight in NODES:
        factor = weight * flat.rsqrt(1 + node * 0.5 * inverse)
        total = total + (factor * (1 + node * inverse) if order else factor)
    value = flat.where(near, series * flat.exp(small), total * flat.sqrt(2 * inverse))
    return _at_edges(x, value, math.inf)


@_rows("scaled_modified_bessel_k0", "x")
def scaled_modified_bessel_k0(x):
    """exp(x) * modified_bessel_k0(x)"""
    return _second_scaled(0, x)


@_rows("scaled_modified_bessel_k1", "x")
def scaled_modified_bessel_k1(x):
    """exp(x) * modified_bessel_k1(x)"""
    return _second_scaled(1, x)


@_rows("modified_bessel_k0")
def modified_bessel_k0(x):
    """The modified Bessel function of the second kind of order 0"""
    return _second_scaled(0, x) * flat.exp(flat.neg(x))


@_rows("modified_bessel_k1")
def modified_bessel_k1(x):
    """The modified Bessel function of the second kind of order 1"""
    return _second_scaled(1, x) * flat.exp(flat.neg(x))


# Airy


def _airy_near(x):
    """Ai by its two power series, whose terms follow from Ai'' = x Ai."""
    cube = x * x * x
    even, odd = [1.0], [1.0]
    for k in range(1, 45):
        even.append(even[-1] / ((3 * k - 1) * (3 * k)))
        odd.append(odd[-1] / ((3 * k) * (3 * k + 1)))
    value = 3 ** (-2 / 3) / math.gamma(2 / 3)
    slope = -(3 ** (-1 / 3)) / math.gamma(1 / 3)
    return value * polynomial(cube, even) + slope * (x * polynomial(cube, odd))


def _airy_right(x):
    """Ai for x from 2 on, by the integral for K of order 1/3 at z = 2/3 x^(3/2)."""
    z = x * flat.sqrt(x) * (2 / 3)
    total = flat.full_like(x, 0)
    for square, weight in NODES:
        part = square * 0.5 / z
        total = total + weight * flat.rsqrt(1 + part) * flat.cosh(flat.asinh(flat.sqrt(part)) * (2 / 3))
    return flat.exp(flat.neg(z)) * flat.sqrt(2 * x / (3 * z)) * total / math.pi


def _airy_left(x):
    """Ai(-x) for x from 7 on: the asymptotic series, in powers of 1 / z, z = 2/3 x^(3/2)."""
    z = x * flat.sqrt(x) * (2 / 3)
    terms = [1.0]
    for k in range(1, 22):
        terms.append(terms[-1] * (6 * k - 5) * (6 * k - 1) / (72 * k))
    square = flat.neg(1 / (z * z))
    cos, sin = flat.cos(z), flat.sin(z)
    sum_ = (cos + sin) * polynomial(square, terms[0::2]) + (sin - cos) * polynomial(square, terms[1::2]) / z
    return sum_ * flat.rsqrt(flat.sqrt(x)) / math.sqrt(2 * math.pi)


@_rows("airy_ai", "x", between=((-30, -7), (2.2, 8)))  # elsewhere PyTorch's values are off by up to 3e-6
def airy_ai(x):
    """Airy's function Ai"""
    left, right = x < -7, x > 2
    value = _airy_near(flat.where(left | right, 0, x))
    value = flat.where(right, _airy_right(flat.where(right, x, 2)), value)
    return flat.where(left, _airy_left(flat.where(left, flat.neg(x), 7)), value)
