"""Rows that round a number or take it apart: floor to frac, abs and sign, mantissa and exponent."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.ops.pointwise import copy_sign
from tenfold.ops.precision import widened
from tenfold.ops.promote import common, to_float
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _rounding(build, meaning, *names):
    """Rows for a rounding of floats that leaves integers as they are."""

    @op(
        *[f"{name}(Tensor self) -> Tensor" for name in names],
        meaning=meaning,
        inplace=True,
        forms="function_ foreach",
    )
    def rounding(x):
        if x.dtype.kind in ("bool", "complex"):
            raise DTypeError(f"{names[0]} is not defined for {x.dtype.name}")
        return x if x.dtype.kind == "int" else build(x)


def truncate(x):
    return copy_sign(flat.floor(flat.abs(x)), x)


_rounding(flat.floor, "The largest integer that is not above self", "floor")
_rounding(flat.ceil, "The smallest integer that is not below self", "ceil")
_rounding(flat.round_half_even, "The nearest integer, halves to even", "round")
_rounding(truncate, "self without its fraction: rounded towards zero", "trunc", "fix")


def _decimals():
    return [S(T(3, 4), decimals=each) for each in (0, 1, 3, -1)] + [
        S(T(), decimals=2),
        S(T(0, 3), decimals=2),
    ]


@op(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    inplace=True,
    samples=_decimals,
    forms="function_ foreach",
)
@op("special_round(Tensor self, *, int decimals=0) -> Tensor", method=False, samples=_decimals)
@widened
def round_to(x, decimals):
    """Rounded to so many decimal places, halves to even; a negative count rounds to tens, hundreds, ..."""
    if x.dtype.kind == "int" and decimals == 0:
        return x
    if not x.dtype.is_floating_point:
        raise DTypeError(f"round to decimals is not defined for {x.dtype.name}")
    if decimals == 0:
        return flat.round_half_even(x)
    ten = 10.0 ** abs(decimals)
    return flat.round_half_even(x * ten) / ten if decimals > 0 else flat.round_half_even(x / ten) * ten


@op("frac(Tensor self) -> Tensor", inplace=True, forms="function_ foreach")
@widened
def frac(x):
    """self - trunc(self)"""
    if not x.dtype.is_floating_point:
        raise DTypeError(f"frac is not defined for {x.dtype.name}")
    return x - truncate(x)


_COMPLEX = (dtypes.complex64, dtypes.complex128)


@op("abs(Tensor self) -> Tensor", inplace=True, forms="function_ foreach", casts_out=_COMPLEX)
@op("absolute(Tensor self) -> Tensor", inplace=True, torch_dialect="abs(self)", casts_out=_COMPLEX)
def absolute(x):
    """|self|; of a complex number sqrt(real ** 2 + imag ** 2)"""
    return _size(x) if x.dtype.is_signed or x.dtype.kind == "bool" else x


@flat.differentiated(lambda cotangent, result, x: (flat.convert(cotangent, x.dtype) * sgn(x),))
def _size(x):
    return flat.abs(x)


@op("sign(Tensor self) -> Tensor", inplace=True, forms="foreach")
def sign(x):
    """-1, 0 or 1"""
    if x.dtype.is_complex:
        raise DTypeError("sign is not defined for complex numbers", help="use sgn")
    if x.dtype.kind == "bool":
        return x
    if x.dtype.is_floating_point:
        return flat.where(flat.isnan(x) | flat.eq(x, 0), 0, flat.sign(x))  # of -0.0 it is 0.0
    return flat.sign(x) if x.dtype.is_signed else flat.convert(flat.ne(x, 0), x.dtype)


@op("sgn(Tensor self) -> Tensor", inplace=True)
def sgn(x):
    """self / |self|, and 0 at zero"""
    if not x.dtype.is_complex:
        return sign(x)
    size = flat.abs(x)
    zero = flat.eq(size, 0)
    size = flat.where(zero, 1, size)
    return flat.where(zero, 0, flat.complex(flat.real(x) / size, flat.imag(x) / size))


@op(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=to_float,
    inplace=True,
    saves="other",
)
def copysign(x, y):
    """|self| with the sign of other"""
    x, y = flat.broadcast(x, y)
    if x.dtype.is_complex:
        raise DTypeError("copysign is not defined for complex numbers")
    return _with_sign(x, y)


def _of_with_sign(cotangent, result, x, y):
    """By the quotient, which is NaN at infinities and NaN, as PyTorch does; zero is taken for level."""
    return flat.where(flat.eq(x, 0), 0, cotangent * (result / x)), flat.full_like(y, 0)


@flat.differentiated(_of_with_sign)
def _with_sign(x, y):
    return copy_sign(x, y)


@op(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    inplace=True,
    forms="function_",
)
def nan_to_num(x, nan, posinf, neginf):
    """NaN replaced by `nan` (0), infinities by `posinf` and `neginf` (the largest finite numbers)"""
    if x.dtype.is_complex:
        return flat.complex(
            nan_to_num(flat.real(x), nan, posinf, neginf), nan_to_num(flat.imag(x), nan, posinf, neginf)
        )
    if not x.dtype.is_floating_point:
        return x
    limits = dtypes.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    finite = flat.where(flat.eq(x, float("inf")), high, flat.where(flat.eq(x, float("-inf")), low, x))
    return flat.where(flat.isnan(x), 0.0 if nan is None else nan, finite)


# Exponents and neighbours


def _of_frexp(cotangents, results, x):
    """The exponent is constant between jumps, so the mantissa is the number scaled."""
    return (cotangents[0] / flat.power(2, flat.convert(results[1], x.dtype)),)


@op("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)")
@widened
@flat.differentiated(_of_frexp)
def frexp(x):
    """mantissa * 2 ** exponent, the mantissa from 0.5 to 1"""
    if not x.dtype.is_floating_point:
        raise DTypeError(f"frexp is not defined for {x.dtype.name}", help="convert to a float dtype first")
    wide = x.dtype is dtypes.float64
    integer, digits, mask, bias = (dtypes.int64, 52, 0x7FF, 1022) if wide else (dtypes.int32, 23, 0xFF, 126)
    bits = flat.bitcast(x, integer)
    # A subnormal number has no leading one: scaled up it has, and its exponent is that much less.
    subnormal = flat.eq(flat.shift_right_logical(bits, digits) & mask, 0)
    scaled = flat.where(subnormal, x * 2.0 ** (digits + 1), x)
    bits = flat.bitcast(scaled, integer)
    exponent = (flat.shift_right_logical(bits, digits) & mask) - bias
    exponent = flat.where(subnormal, exponent - (digits + 1), exponent)
    mantissa = flat.bitcast((bits & ~(mask << digits)) | (bias << digits), x.dtype)
    plain = flat.eq(x, 0) | flat.invert(flat.is_finite(x))
    exponent = flat.where(plain, 0, exponent)
    return flat.where(plain, x, mantissa), flat.convert(exponent, dtypes.int32)


@op(
    "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    forms="function_",
    saves="other",
    casts_out=True,
)
def ldexp(x, exponent):
    """self * 2 ** other"""
    (exponent,) = to_float(["self"], [exponent])
    x, scale = common(["self", "other"], [x, flat.power(2, exponent)])
    return flat.mul(x, scale)


@op("nextafter(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True)
def nextafter(x, y):
    """The next float after self in the direction of other"""
    if not x.dtype.is_floating_point:
        raise DTypeError(f"nextafter is not defined for {x.dtype.name}")
    return _next(*flat.broadcast(x, y))


@flat.differentiated(lambda cotangent, result, x, y: (flat.where(flat.eq(x, y), 0, cotangent), None))
def _next(x, y):
    return flat.nextafter(x, y)
