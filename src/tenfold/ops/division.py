"""Rows that divide: quotients, exact or rounded, remainders and common divisors."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DivisionByZero, DTypeError
from tenfold.ops.pointwise import copy_sign
from tenfold.ops.precision import exact_number, rounded_numbers
from tenfold.ops.promote import common, exact_other, to_float
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _divisors(**mode):
    """Divisors that are not zero for all dtypes, any divisor for floats."""
    shapes = [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 3), ()), ((), (2, 3)), ((0, 3), (3,))]
    calls = [S(T(*x), T(*y, low=1, high=9), **mode) for x, y in shapes]
    floats = [S(T(5, 6, dtype=each), T(5, 6, dtype=each), **mode) for each in ("float32", "float64")]
    negative = [
        S(T(5, 6, dtype=each), T(6, dtype=each, low=-9, high=-1), **mode) for each in ("int8", "int64")
    ]
    return calls + floats + negative


def _divisor_numbers(**mode):
    return [S(T(3, 4), each, **mode) for each in (2, -3, 0.75, -1.5, True)] + [
        S(T(), 3, **mode),
        S(T(0, 3), 2, **mode),
    ]


def _modes(build):
    return lambda: [each for mode in (None, "trunc", "floor") for each in build(rounding_mode=mode)]


@op(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    "divide.Tensor(Tensor self, Tensor other) -> Tensor",
    "divide.Scalar(Tensor self, Scalar other) -> Tensor",
    "true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
    "true_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=exact_other(to_float),
    numbers=True,
    inplace=True,
    forms="foreach",
)
@exact_number
def div(x, y):
    """self / other, of integers as floats"""
    x, y = flat.broadcast(x, y)
    if x.dtype.is_complex:
        y = flat.where(flat.eq(y, 0), 0, y)  # complex division does not see the sign of a zero divisor
    return flat.div(x, y)


@op(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    promote=exact_other(common),
    inplace=True,
    samples=_modes(_divisors),
    forms="foreach",
    needs="no_overflow",
)
@op(
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    promote=common,
    inplace=True,
    samples=_modes(_divisor_numbers),
    forms="foreach",
    needs="no_overflow",
)
def div_rounded(x, y, rounding_mode):
    """self / other, kept as it is, cut towards zero ("trunc") or rounded down ("floor")"""
    if rounding_mode is None:
        return div(*exact_other(to_float)(("self", "other"), [x, y]))
    if rounding_mode == "floor":
        return floor_divide(x, y)
    if rounding_mode == "trunc":
        return trunc_divide(x, y)
    raise ArgumentError(f"rounding_mode {rounding_mode!r} is not known", help="use None, 'trunc' or 'floor'")


@exact_number
def trunc_divide(x, y):
    x, y = _operands(x, y)
    if not x.dtype.is_floating_point:
        return flat.div(x, y)
    quotient = flat.div(x, y)
    return flat.where(quotient < 0, flat.ceil(quotient), flat.floor(quotient))


def _operands(x, y):
    """Both of one shape. An integer divisor must not be zero: known at once, or when results are read."""
    dividend, divisor = flat.broadcast(x, y)
    if dividend.dtype.is_floating_point:
        return dividend, divisor
    if isinstance(y, int):
        if y % 2 ** (8 * dividend.dtype.itemsize) == 0 and 0 not in dividend.shape:  # it wraps around
            raise DivisionByZero("an integer cannot be divided by zero")
        return dividend, divisor
    holds = flat.ne(divisor, 0)
    return dividend, flat.check(divisor, holds, DivisionByZero, "an integer was divided by zero")


@op(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    promote=exact_other(common),
    numbers=True,
    inplace=True,
    samples=_divisors,
)
@op(
    "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
    samples=_divisor_numbers,
)
@exact_number
def floor_divide(x, y):
    """self / other, rounded down"""
    x, y = _operands(x, y)
    if not x.dtype.is_floating_point:
        quotient = flat.div(x, y)
        if not x.dtype.is_signed:
            return quotient
        inexact = flat.ne(flat.mul(quotient, y), x)
        return flat.where(inexact & flat.ne(x < 0, y < 0), quotient - 1, quotient)
    # Python's way: exact through the remainder, so that 1 // 0.1 is 9 and not 10.
    rest = flat.rem(x, y)
    quotient = (x - rest) / y
    quotient = flat.where(flat.ne(rest, 0) & flat.ne(rest < 0, y < 0), quotient - 1, quotient)
    floored = flat.floor(quotient)
    floored = flat.where(quotient - floored > 0.5, floored + 1, floored)
    plain = flat.stop_gradient(x / y)  # a result that goes by steps is level everywhere, by zero as well
    floored = flat.where(flat.eq(quotient, 0), copy_sign(flat.full_like(x, 0), plain), floored)
    return flat.where(flat.eq(y, 0), plain, floored)


def _of_modulus(cotangent, result, x, y):
    return cotangent, -(cotangent * floor_divide(x, y))


@flat.differentiated(_of_modulus)
def _modulus(x, y):
    rest = flat.rem(x, y)
    return flat.where(flat.ne(rest, 0) & flat.ne(rest < 0, y < 0), rest + y, rest)


@op("remainder.Tensor(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True, samples=_divisors)
@op(
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
    samples=_divisor_numbers,
)
@op(
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    promote=common,
    method=False,
    samples=lambda: [S(number, T(3, 4, low=1, high=9)) for number in (7, -7, 2.5, True)],
    torch_dialect="remainder(full_tensor(self, other), other)",
)
@rounded_numbers
def remainder(x, y):
    """Python's modulus: what is left after division, with the divisor's sign"""
    x, y = _operands(x, y)
    return _modulus(x, y) if x.dtype.is_signed else flat.rem(x, y)


@op(
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    promote=common,
    inplace=True,
    samples=_divisors,
    saves="other",
)
@op(
    "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
    samples=_divisor_numbers,
    saves="other",
)
@rounded_numbers
def fmod(x, y):
    """C's modulus: what is left after division, with the dividend's sign"""
    return flat.rem(*_operands(x, y))


@op("gcd(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True, forms="function_")
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


@op("lcm(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True, forms="function_")
def lcm(x, y):
    """The least common multiple"""
    x, y = flat.broadcast(x, y)
    if x.dtype.is_signed and x.dtype.itemsize < 4:
        # C widens small integers to int before it multiplies.
        return flat.convert(lcm(flat.convert(x, dtypes.int32), flat.convert(y, dtypes.int32)), x.dtype)
    divisor = gcd(x, y)
    zero = flat.eq(divisor, 0)
    multiple = flat.where(zero, 0, x / flat.where(zero, 1, divisor) * y)
    return flat.abs(multiple) if x.dtype.is_signed else multiple
