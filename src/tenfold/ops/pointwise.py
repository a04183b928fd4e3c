"""Pointwise rows: arithmetic. Rounding and the parts of a number are in `rounding.py`."""

from tenfold import dtypes, flat
from tenfold.errors import ArgumentError, DivisionByZero, DTypeError
from tenfold.ops.precision import widened
from tenfold.ops.promote import common, floating, promotion, to_float
from tenfold.ops.table import op


def check_number(name, number, dtype):
    """Refuse a factor such as alpha that the result's dtype cannot hold."""
    if isinstance(number, bool) and dtype.kind != "bool":
        raise DTypeError(f"a bool {name} needs a bool result, not {dtype.name}")
    if isinstance(number, (float, complex)) and dtype.kind in ("bool", "int"):
        raise DTypeError(f"{name} {number} is not an integer, but the result is {dtype.name}")
    if isinstance(number, complex) and not dtype.is_complex:
        raise DTypeError(f"{name} {number} is complex, but the result is {dtype.name}")


@widened
def _axpy(x, y, alpha):
    return x + y * alpha


@op(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    promote=common,
    inplace=True,
)
def add(x, y, alpha):
    """self + alpha * other"""
    if type(alpha) is int and alpha == 1:
        return flat.add(x, y)
    value = x if isinstance(x, flat.Value) else y
    check_number("alpha", alpha, value.dtype)
    return _axpy(x, y if isinstance(y, flat.Value) else flat.constant(y, value.dtype), alpha)


@op(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    promote=promotion(lambda dtype: _numeric("subtraction", dtype)),
    inplace=True,
)
def sub(x, y, alpha):
    """self - alpha * other"""
    if type(alpha) is int and alpha == 1:
        return flat.sub(x, y)
    value = x if isinstance(x, flat.Value) else y
    check_number("alpha", alpha, value.dtype)
    return _axpy(x, flat.neg(y if isinstance(y, flat.Value) else flat.constant(y, value.dtype)), alpha)


def _numeric(what, dtype):
    if dtype.kind == "bool":
        raise DTypeError(f"{what} is not defined for bool tensors", help="use ^ or logical_xor, or convert to int")
    return dtype


@op(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    promote=promotion(lambda dtype: _numeric("subtraction", dtype)),
    method=False,
)
def rsub(x, y, alpha):
    """other - alpha * self"""
    return sub(y, x, alpha)


@op(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    "multiply.Tensor(Tensor self, Tensor other) -> Tensor",
    "multiply.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
)
def mul(x, y):
    return flat.mul(x, y)


@op(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    "divide.Tensor(Tensor self, Tensor other) -> Tensor",
    "divide.Scalar(Tensor self, Scalar other) -> Tensor",
    "true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
    "true_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=to_float,
    inplace=True,
)
def div(x, y):
    return flat.div(x, y)


@op(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    promote=common,
    inplace=True,
)
def div_rounded(x, y, rounding_mode):
    """self / other, kept as it is, cut towards zero ("trunc") or rounded down ("floor")"""
    if rounding_mode is None:
        x, y = flat.broadcast(x, y)
        dtype = floating(x.dtype)
        return flat.div(flat.convert(x, dtype), flat.convert(y, dtype))
    if rounding_mode == "floor":
        return floor_divide(x, y)
    if rounding_mode == "trunc":
        return trunc_divide(x, y)
    raise ArgumentError(f"rounding_mode {rounding_mode!r} is not known", help="use None, 'trunc' or 'floor'")


@widened
def trunc_divide(x, y):
    x, y = flat.broadcast(x, y)
    if not x.dtype.is_floating_point:
        return flat.div(x, _nonzero(y))
    quotient = flat.div(x, y)
    return flat.where(quotient < 0, flat.ceil(quotient), flat.floor(quotient))


def _nonzero(divisor):
    """An integer divisor, checked when results are read; division by zero has no integer value."""
    if isinstance(divisor, flat.Value):
        return flat.check(divisor, flat.ne(divisor, 0), DivisionByZero, "an integer was divided by zero")
    if divisor == 0:
        raise DivisionByZero("an integer cannot be divided by zero")
    return divisor


@op(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
)
@widened
def floor_divide(x, y):
    """self / other, rounded down"""
    dtype = x.dtype if isinstance(x, flat.Value) else y.dtype
    if not dtype.is_floating_point:
        y = _nonzero(y)
        x, y = flat.broadcast(x, y)
        quotient = flat.div(x, y)
        if not dtype.is_signed:
            return quotient
        inexact = flat.ne(flat.mul(quotient, y), x)
        return flat.where(inexact & flat.ne(x < 0, y < 0), quotient - 1, quotient)
    x, y = flat.broadcast(x, y)
    # Python's way: exact through the remainder, so that 1 // 0.1 is 9 and not 10.
    rest = flat.rem(x, y)
    quotient = (x - rest) / y
    quotient = flat.where(flat.ne(rest, 0) & flat.ne(rest < 0, y < 0), quotient - 1, quotient)
    floored = flat.floor(quotient)
    floored = flat.where(quotient - floored > 0.5, floored + 1, floored)
    plain = x / y
    floored = flat.where(flat.eq(quotient, 0), copy_sign(flat.full_like(x, 0), plain), floored)
    return flat.where(flat.eq(y, 0), plain, floored)


@op(
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
)
@op("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", promote=common, method=False)
@widened
def remainder(x, y):
    """Python's modulus: what is left after division, with the divisor's sign"""
    dtype = x.dtype if isinstance(x, flat.Value) else y.dtype
    x, y = flat.broadcast(x, y if dtype.is_floating_point else _nonzero(y))
    rest = flat.rem(x, y)
    if not dtype.is_signed:
        return rest
    return flat.where(flat.ne(rest, 0) & flat.ne(rest < 0, y < 0), rest + y, rest)


@op(
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
)
@widened
def fmod(x, y):
    """C's modulus: what is left after division, with the dividend's sign"""
    dtype = x.dtype if isinstance(x, flat.Value) else y.dtype
    return flat.rem(x, y if dtype.is_floating_point else _nonzero(y))


@op("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", promote=common, inplace=True)
@op("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", promote=common, method=False)
@op("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", promote=common, inplace=True)
@widened
def power(x, y):
    """self ** exponent"""
    if not isinstance(y, flat.Value):
        return _power_of_number(x, y)
    x, y = flat.broadcast(x, y)
    if x.dtype.is_complex:
        plain = flat.power(x, y)
        return flat.where(flat.eq(x, 0), flat.where(flat.eq(y, 0), flat.full_like(x, 1), flat.full_like(x, 0)), plain)
    return flat.power(x, y)


def _power_of_number(x, exponent):
    """x ** number by products, quotients and roots where they are exact or faster."""
    if x.dtype.kind == "int" and exponent < 0:
        raise DTypeError(
            f"an integer tensor cannot be raised to the negative power {exponent}", help="convert it to float first"
        )
    if exponent == 0:
        return flat.full_like(x, 1)
    if exponent in (1, 2, 3, 4) and x.dtype.kind != "bool":
        return x ** int(exponent.real)
    if x.dtype.kind not in ("bool", "int") and exponent in (-1, -2):
        return flat.div(1, x if exponent == -1 else x * x)
    if exponent == 0.5:
        return flat.sqrt(x)
    if exponent == -0.5:
        return flat.rsqrt(x)
    return power(x, flat.full_like(x, exponent))


_to_double = promotion(lambda dtype: dtypes.complex128 if dtype.is_complex else dtypes.float64)


@op("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", promote=_to_double, inplace=True)
@op("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", promote=_to_double, method=False)
@op("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", promote=_to_double, inplace=True)
def float_power(x, y):
    """self ** exponent in float64 or complex128"""
    return power(x, y)


@op("square(Tensor self) -> Tensor", inplace=True)
def square(x):
    if x.dtype.kind == "bool":
        x = flat.convert(x, dtypes.int64)
    return flat.mul(x, x)


@op("reciprocal(Tensor self) -> Tensor", promote=to_float, inplace=True)
def reciprocal(x):
    """1 / self"""
    return flat.div(1, x)


@op("neg(Tensor self) -> Tensor", "negative(Tensor self) -> Tensor", inplace=True)
def neg(x):
    _numeric("negation", x.dtype)
    return flat.neg(x)


@op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", promote=common, inplace=True)
@widened
def addcmul(x, tensor1, tensor2, value):
    """self + value * tensor1 * tensor2"""
    _numeric("addcmul", x.dtype)
    if x.dtype.kind == "int":
        value = int(value)
    return x + value * tensor1 * tensor2


@op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", promote=common, inplace=True)
@widened
def addcdiv(x, tensor1, tensor2, value):
    """self + value * tensor1 / tensor2"""
    if x.dtype.kind in ("bool", "int"):
        raise DTypeError(
            f"addcdiv does not divide {x.dtype.name} tensors", help="use self + value * torch.div(tensor1, tensor2)"
        )
    return x + value * tensor1 / tensor2


@op(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    inplace=True,
)
@widened
def lerp(x, end, weight):
    """self + weight * (end - self)"""
    if x.dtype.kind in ("bool", "int"):
        raise DTypeError(f"lerp is not defined for {x.dtype.name}")
    check_number("weight", weight, x.dtype)
    # From the nearer end, so that weight 0 gives self exactly and weight 1 gives end.
    difference = end - x
    if not isinstance(weight, flat.Value):
        return x + difference * weight if abs(weight) < 0.5 else end - difference * (1 - weight)
    size = flat.abs(weight)
    return flat.where(size < 0.5, x + difference * weight, end - difference * (1 - weight))


@op("hypot(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True)
@widened
def hypot(x, y):
    """sqrt(self ** 2 + other ** 2) without overflow"""
    return flat.abs(flat.complex(x, y))


@op("gcd(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True)
def gcd(x, y):
    """The greatest common divisor"""
    x, y = flat.broadcast(x, y)
    if x.dtype.kind != "int":
        raise DTypeError(f"gcd is defined for integers, not {x.dtype.name}")

    def rest(a, b):
        zero = flat.eq(b, 0)
        return flat.where(zero, a, b), flat.where(zero, 0, flat.rem(a, flat.where(zero, 1, b)))

    divisor, _ = flat.while_loop(lambda a, b: flat.reduce(flat.ne(b, 0), "or"), rest, (x, y))
    return flat.abs(divisor) if x.dtype.is_signed else divisor


@op("lcm(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True)
def lcm(x, y):
    """The least common multiple"""
    x, y = flat.broadcast(x, y)
    divisor = gcd(x, y)
    zero = flat.eq(divisor, 0)
    multiple = flat.where(zero, 0, x / flat.where(zero, 1, divisor) * y)
    return flat.abs(multiple) if x.dtype.is_signed else multiple


def copy_sign(magnitude, sign):
    """|magnitude| with the sign, also of zero and NaN, of a float."""
    size = flat.abs(magnitude)
    return flat.where(sign_bit(sign), flat.neg(size), size)


def sign_bit(x):
    """Whether a float's sign bit is set."""
    integer = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.itemsize]
    return flat.bitcast(x, integer) < 0
