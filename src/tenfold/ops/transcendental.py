"""Exponentials, logarithms, trigonometry, and what complex numbers are made of."""

import math

from tenfold import flat
from tenfold.base.errors import DTypeError
from tenfold.ops.numbers import number_in
from tenfold.ops.pointwise import copy_sign
from tenfold.ops.precision import widened
from tenfold.ops.promote import common, to_float
from tenfold.ops.rounding import sgn
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _unary(build, meaning, *names, **facts):
    """Rows for a function of one float or complex number, under each of its names."""
    schemas = [f"{name}(Tensor self) -> Tensor" for name in names]
    op(*schemas, promote=to_float, inplace=True, meaning=meaning, **facts)(widened(build))


_unary(flat.exp, "e ** self", "exp", autocast="cuda: float32", forms="function_ foreach")
_unary(
    flat.log,
    "The natural logarithm of self; NaN for a negative real number",
    "log",
    autocast="cuda: float32",
    forms="function_ foreach",
)
_unary(flat.sqrt, "self ** (1 / 2); NaN for a negative real number", "sqrt", forms="function_ foreach")
_unary(flat.rsqrt, "1 / sqrt(self)", "rsqrt", autocast="cuda: float32", forms="function_ foreach")
_unary(flat.sin, "The sine of self, in radians", "sin", forms="function_ foreach")
_unary(flat.cos, "The cosine of self, in radians", "cos", forms="function_ foreach")
_unary(flat.tan, "sin(self) / cos(self)", "tan", autocast="cuda: float32", forms="function_ foreach")
_unary(flat.tanh, "(exp(self) - exp(-self)) / (exp(self) + exp(-self))", "tanh", forms="function_ foreach")
_unary(
    flat.asin,
    "The angle, from -pi / 2 to pi / 2, whose sine is self; NaN for a real number outside [-1, 1]",
    "asin",
    "arcsin",
    autocast="cuda: float32",
    forms="function_ foreach",
)
_unary(
    flat.acos,
    "The angle, from 0 to pi, whose cosine is self; NaN for a real number outside [-1, 1]",
    "acos",
    "arccos",
    autocast="cuda: float32",
    forms="function_ foreach",
)
_unary(
    flat.atan,
    "The angle, from -pi / 2 to pi / 2, whose tangent is self",
    "atan",
    "arctan",
    forms="function_ foreach",
)
_unary(
    flat.acosh,
    "log(self + sqrt(self + 1) * sqrt(self - 1)); NaN for a real number below 1",
    "acosh",
    "arccosh",
    forms="function_",
)
_unary(
    flat.atanh,
    "log((1 + self) / (1 - self)) / 2; NaN for a real number outside [-1, 1]",
    "atanh",
    "arctanh",
    forms="function_",
)


@op(
    "asinh(Tensor self) -> Tensor",
    "arcsinh(Tensor self) -> Tensor",
    promote=to_float,
    inplace=True,
    forms="function_",
)
@widened
@flat.differentiated(lambda cotangent, result, x: (cotangent * flat.conj(flat.rsqrt(x * x + 1)),))
def asinh(x):
    """log(self + sqrt(self ** 2 + 1))"""
    value = flat.asinh(x)
    if not x.dtype.is_complex:
        return value
    # The sign of a zero real part tells on which side of the branch cut x lies.
    return flat.complex(copy_sign(flat.real(value), flat.real(x)), flat.imag(value))


def _half_exponentials(x):
    """exp(|x|) / 2 and exp(-|x|) / 2, by the square of exp(|x| / 2): no overflow before its time."""
    root = flat.exp(flat.abs(x) * 0.5)
    return root * 0.5 * root, 0.5 / (root * root)


# Their derivatives are each other: those of the formulas would take |x| for a function with a kink.


@op(
    "sinh(Tensor self) -> Tensor",
    promote=to_float,
    inplace=True,
    autocast="cuda: float32",
    forms="function_ foreach",
)
@widened
@flat.differentiated(lambda cotangent, result, x: (cotangent * flat.conj(cosh(x)),))
def sinh(x):
    """(exp(self) - exp(-self)) / 2"""
    if x.dtype.is_complex:
        return flat.sinh(x)
    grown, shrunk = _half_exponentials(x)
    size = grown - shrunk
    return flat.where(flat.abs(x) < 1, flat.sinh(x), flat.where(x < 0, flat.neg(size), size))


@op(
    "cosh(Tensor self) -> Tensor",
    promote=to_float,
    inplace=True,
    autocast="cuda: float32",
    forms="function_ foreach",
)
@widened
@flat.differentiated(lambda cotangent, result, x: (cotangent * flat.conj(sinh(x)),))
def cosh(x):
    """(exp(self) + exp(-self)) / 2"""
    if x.dtype.is_complex:
        return flat.cosh(x)
    grown, shrunk = _half_exponentials(x)
    return grown + shrunk


@op(
    "expm1(Tensor self) -> Tensor",
    promote=to_float,
    inplace=True,
    autocast="cuda: float32",
    forms="function_ foreach",
)
@op("special_expm1(Tensor self) -> Tensor", promote=to_float, method=False, autocast="cuda: float32")
@widened
def expm1(x):
    """exp(self) - 1, accurate near zero"""
    return flat.expm1(x)


@op(
    "log1p(Tensor self) -> Tensor",
    promote=to_float,
    inplace=True,
    autocast="cuda: float32",
    forms="function_ foreach",
)
@op(
    "special_log1p(Tensor self) -> Tensor",
    promote=to_float,
    method=False,
    autocast="cuda: float32",
    torch_dialect="log1p(self)",
)
@widened
def log1p(x):
    """log(1 + self), accurate near zero"""
    return flat.log1p(x)


@op("exp2(Tensor self) -> Tensor", promote=to_float, inplace=True, forms="function_")
@op("special_exp2(Tensor self) -> Tensor", promote=to_float, method=False, torch_dialect="exp2(self)")
@widened
def exp2(x):
    """2 ** self"""
    if not x.dtype.is_complex:
        return flat.power(2, x)
    return flat.exp(flat.complex(flat.real(x) * math.log(2), flat.imag(x) * math.log(2)))


@op(
    "log2(Tensor self) -> Tensor",
    promote=to_float,
    inplace=True,
    autocast="cuda: float32",
    forms="function_ foreach",
)
@widened
def log2(x):
    """log(self) / log(2)"""
    return _scaled_log(x, math.log(2))


@op(
    "log10(Tensor self) -> Tensor",
    promote=to_float,
    inplace=True,
    autocast="cuda: float32",
    forms="function_ foreach",
)
@widened
def log10(x):
    """log(self) / log(10)"""
    return _scaled_log(x, math.log(10))


def _scaled_log(x, base):
    logarithm = flat.log(x)
    if not x.dtype.is_complex:
        return logarithm / base
    return flat.complex(flat.real(logarithm) / base, flat.imag(logarithm) / base)


@op("sigmoid(Tensor self) -> Tensor", promote=to_float, inplace=True, forms="function_ foreach")
@op("special_expit(Tensor self) -> Tensor", promote=to_float, method=False, torch_dialect="sigmoid(self)")
@widened
def sigmoid(x):
    """1 / (1 + exp(-self))"""
    return flat.logistic(x)


@op("sinc(Tensor self) -> Tensor", promote=to_float, inplace=True, forms="function_")
@op("special_sinc(Tensor self) -> Tensor", promote=to_float, method=False)
@widened
def sinc(x):
    """sin(pi * self) / (pi * self), and 1 at zero"""
    zero = flat.eq(x, 0)
    angle = flat.where(zero, 1, x) * math.pi
    return flat.where(zero, 1, flat.sin(angle) / angle)


def _in_unit_interval():
    return [
        S(T(3, 4, low=0.0, high=1.0)),
        S(T(3, 4), 0.25),
        S(T(3, 4), 0.01),
        S(T(3, 4), 0.75),
        S(T(0, 3)),
        S(T(), 0.1),
    ]


@op(
    "logit(Tensor self, float? eps=None) -> Tensor",
    promote=to_float,
    inplace=True,
    samples=_in_unit_interval,
    forms="function_",
)
@op(
    "special_logit(Tensor self, float? eps=None) -> Tensor",
    promote=to_float,
    method=False,
    samples=_in_unit_interval,
)
def logit(x, eps):
    """log(self / (1 - self)), with self first clamped to [eps, 1 - eps] if eps is given"""
    if x.dtype.is_complex:
        raise DTypeError("logit is not defined for complex numbers")
    return _log_odds(x, eps if eps is None else number_in(eps, x.dtype))


def _of_log_odds(cotangent, result, x, eps):
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    outside = flat.lt(x, low) | flat.gt(x, high)
    return (flat.where(outside, math.nan if eps is None else 0, cotangent / (x * (1 - x))),)


@flat.differentiated(_of_log_odds)
def _log_odds(x, eps):
    if eps is not None:
        x = flat.where(
            flat.lt(x, eps), eps, flat.where(flat.gt(x, 1 - eps), 1 - eps, x)
        )  # eps may exceed 1/2
    return flat.log(x / (1 - x))


@op(
    "atan2(Tensor self, Tensor other) -> Tensor",
    "arctan2(Tensor self, Tensor other) -> Tensor",
    promote=to_float,
    inplace=True,
    autocast="cuda: widest",
)
@widened
def atan2(y, x):
    """The angle of the point (other, self), from -pi to pi"""
    if y.dtype.is_complex:
        raise DTypeError("atan2 is not defined for complex numbers")
    return flat.atan2(y, x)


def _scaled(name, meaning, factor):
    @op(f"{name}(Tensor self) -> Tensor", promote=to_float, meaning=meaning, inplace=True, forms="function_")
    @widened
    def scaled(x):
        if x.dtype.is_complex:
            raise DTypeError(f"{name} is not defined for complex numbers")
        return x * factor


_scaled("deg2rad", "self * pi / 180", math.pi / 180)
_scaled("rad2deg", "self * 180 / pi", 180 / math.pi)


def _log_add(x, y, exp, log, log1p):
    """log(exp(x) + exp(y)) without overflow: the larger is taken out of the sum."""
    if not x.dtype.is_complex:
        larger, gap = flat.maximum(x, y), flat.abs(x - y)
        same = flat.eq(x, y) & flat.isinf(x)
        return flat.where(same, x, larger + log1p(exp(flat.neg(flat.where(same, 0, gap)))))
    a, b = flat.real(x), flat.real(y)
    swap = (a >= b) | flat.isnan(a)
    smaller, larger = flat.where(swap, y, x), flat.where(swap, x, y)
    low = flat.real(smaller)
    both = flat.eq(low, flat.real(larger)) & flat.isinf(low)
    summed = flat.where(low < 0, smaller, log(exp(smaller) + exp(larger)))
    return flat.where(both, summed, larger + log1p(exp(smaller - larger)))


def _of_log_add(exp):
    """Each number's part in the sum of exponentials."""

    return lambda cotangent, result, x, y: [cotangent / flat.conj(1 + exp(gap)) for gap in (y - x, x - y)]


def _summands(x, y):
    if x.dtype.kind in ("bool", "int"):
        raise DTypeError(
            f"logaddexp is not defined for {x.dtype.name}", help="convert to a float dtype first"
        )
    return flat.broadcast(x, y)


@flat.differentiated(_of_log_add(flat.exp))
def _log_add_e(x, y):
    return _log_add(x, y, flat.exp, flat.log, flat.log1p)


@flat.differentiated(_of_log_add(exp2))
def _log_add_2(x, y):
    return _log_add(x, y, exp2, log2, lambda z: flat.log1p(z) / math.log(2))


@op("logaddexp(Tensor self, Tensor other) -> Tensor", promote=common)
@widened
def logaddexp(x, y):
    """log(exp(self) + exp(other))"""
    return _log_add_e(*_summands(x, y))


@op("logaddexp2(Tensor self, Tensor other) -> Tensor", promote=common)
@widened
def logaddexp2(x, y):
    """log2(2 ** self + 2 ** other)"""
    return _log_add_2(*_summands(x, y))


# Complex numbers


def _parts():
    floats = [S(T(3, 4, dtype=each), T(3, 4, dtype=each)) for each in ("float32", "float64")]
    return [
        *floats,
        S(T(3, 1, dtype="float32"), T(4, dtype="float32")),
        S(T(dtype="float64"), T(dtype="float64")),
    ]


@op("complex(Tensor real, Tensor imag) -> Tensor", method=False, samples=_parts)
def complex(real, imag):
    """real + imag * 1j"""
    return flat.complex(real, imag)


def _of_polar(cotangent, result, size, angle):
    # By PyTorch's convention the size's gradient has the direction of the result, and at zero none.
    turned = flat.conj(cotangent)
    return flat.real(turned * sgn(result)), flat.neg(flat.imag(turned * result))


@flat.differentiated(_of_polar)
def _polar(size, angle):
    return flat.complex(size * flat.cos(angle), size * flat.sin(angle))


@op("polar(Tensor abs, Tensor angle) -> Tensor", method=False, samples=_parts, autocast="cpu: float32")
def polar(size, angle):
    """abs * exp(angle * 1j)"""
    return _polar(*flat.broadcast(size, angle))


@op("angle(Tensor self) -> Tensor", promote=to_float)
def angle(x):
    """The angle of a complex number; of a real one 0 or pi"""
    if x.dtype.is_complex:
        return flat.atan2(flat.imag(x), flat.real(x))
    # x * 0 is NaN for NaN, and level there as well.
    return flat.where(flat.isnan(x), x * 0, flat.where(x < 0, flat.full_like(x, math.pi), 0))


@op("conj_physical(Tensor self) -> Tensor", inplace=True, forms="function_", linear=True)
@op("_conj_physical(Tensor self) -> Tensor")
def conj_physical(x):
    """The complex conjugate, in memory of its own"""
    return flat.conj(x)
