"""Numbers: integers and ratios, which are exact, and floats. The operators take tensors too."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tenfold.base.errors import TenfoldError
from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.numerals import DIGITS, MOST_BITS, Number, TooLarge, numeral, to_float, whole
from tenfold.purple.prims.refused import refusal
from tenfold.purple.prims.registry import (
    is_machine_int,
    primitive,
    too_wide,
    want,
    want_int,
    want_integer,
    want_number,
    wrong_type,
)
from tenfold.purple.printing import display_text
from tenfold.tensor import Tensor

NUMBERS = (int, float, Fraction)


def overflow() -> PurpleError:
    return PurpleError(messages.OVERFLOW, "arithmetic")


def fit(value: Any) -> Any:
    """A number that was computed, in its simplest form; one that is too long is an error."""
    if type(value) is int:
        if value.bit_length() > MOST_BITS:
            raise overflow()
    elif type(value) is Fraction:
        fit(value.numerator)
        fit(value.denominator)
        return whole(value)
    return value


def operands(name: str, left: Any, right: Any) -> bool:
    """Whether both are numbers; False when a tensor is among them. Anything else is an error."""
    left_number, right_number = type(left) in NUMBERS, type(right) in NUMBERS
    if left_number and right_number:
        return True
    for value, is_number in ((left, left_number), (right, right_number)):
        if not is_number and not isinstance(value, Tensor):
            wrong_type(name, "number*", value)
    return False


def beside_tensor(name: str, value: Any) -> Any:
    """A number as a tensor's operator takes it: a ratio is a float there, an integer has 64 bits."""
    if type(value) is Fraction:
        return to_float(value)
    if type(value) is int and not is_machine_int(value):
        too_wide(name, value)
    return value


def on_tensors(name: str, apply: Callable[..., Any], *operands: Any) -> Any:
    """An operator on tensors, and numbers beside them: a tensor knows the operator turned round."""
    try:
        return apply(*[beside_tensor(name, operand) for operand in operands])
    except TenfoldError as error:
        raise refusal(name, error, operands, {}) from None


def _fold(name: str, apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def two(left: Any, right: Any) -> Any:
        if type(left) is Tensor and (type(right) is Tensor or type(right) is float):
            try:
                return apply(left, right)
            except TenfoldError as error:
                raise refusal(name, error, (left, right), {}) from None
        if not operands(name, left, right):
            return on_tensors(name, apply, left, right)
        try:
            return fit(apply(left, right))
        except OverflowError:  # an exact number that no float holds, beside a float
            return apply(to_float(left), to_float(right))

    return two


_add, _subtract, _multiply = _fold("+", operator.add), _fold("-", operator.sub), _fold("*", operator.mul)


def _alone(name: str, value: Any) -> Any:
    if type(value) not in NUMBERS and not isinstance(value, Tensor):
        wrong_type(name, "number*", value)
    return value


@primitive("+")
def add(*values: Any) -> Any:
    if len(values) == 2:
        return _add(*values)
    total = _alone("+", values[0]) if values else 0
    for value in values[1:]:
        total = _add(total, value)
    return total


@primitive("*")
def multiply(*values: Any) -> Any:
    if len(values) == 2:
        return _multiply(*values)
    total = _alone("*", values[0]) if values else 1
    for value in values[1:]:
        total = _multiply(total, value)
    return total


@primitive("-")
def subtract(first: Any, *values: Any) -> Any:
    if not values:
        if type(first) in NUMBERS:
            return -first
        return on_tensors("-", operator.neg, _alone("-", first))
    for value in values:
        first = _subtract(first, value)
    return first


@primitive("/")
def divide(first: Any, *values: Any) -> Any:
    if not values:
        return _divide(1, _alone("/", first))
    for value in values:
        first = _divide(first, value)
    return first


def _divide(left: Any, right: Any) -> Any:
    if not operands("/", left, right):
        return on_tensors("/", operator.truediv, left, right)
    if type(left) is not float and type(right) is not float:
        if right == 0:
            raise PurpleError(messages.DIVISION, "arithmetic")
        return fit(Fraction(left) / right)
    left, right = to_float(left), to_float(right)
    if right:
        return left / right
    if left != left or left == 0:
        return math.nan
    return math.copysign(math.inf, math.copysign(1.0, left) * math.copysign(1.0, right))


def _comparison(name: str, compare: Callable[[Any, Any], Any]) -> None:
    def call(first: Any, *others: Any) -> Any:
        if len(others) == 1:
            if operands(name, first, others[0]):
                return compare(first, others[0])
            return on_tensors(name, compare, first, others[0])
        if not others:
            want_number(name, first)
            return True
        result = True
        for other in others:
            want_number(name, first)
            want_number(name, other)
            result = result and compare(first, other)
            first = other
        return result

    primitive(name)(call)


for _name, _compare in (
    ("=", operator.eq),
    ("<", operator.lt),
    (">", operator.gt),
    ("<=", operator.le),
    (">=", operator.ge),
):
    _comparison(_name, _compare)


@primitive("quotient")
def quotient(left: Any, right: Any) -> int:
    want_integer("quotient", left)
    if want_integer("quotient", right) == 0:
        raise PurpleError(messages.DIVISION, "arithmetic")
    parts = abs(left) // abs(right)
    return parts if (left < 0) == (right < 0) else -parts


def _integers(name: str, left: Any, right: Any) -> bool:
    """Whether both operands of a division are integers; False for floats. A ratio is an error."""
    want_number(name, left)
    want_number(name, right)
    if type(left) is int and type(right) is int:
        if right == 0:
            raise PurpleError(messages.DIVISION, "arithmetic")
        return True
    if type(left) is not float and type(right) is not float:
        wrong_type(name, "int", right if type(left) is int else left)
    return False


@primitive("%")
def remainder(left: Any, right: Any) -> int | float:
    if _integers("%", left, right):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return _float_remainder(to_float(left), to_float(right))


def _float_remainder(left: float, right: float) -> float:
    """C's `fmod`."""
    if right == 0 or math.isinf(left) or left != left or right != right:
        return math.nan
    return math.fmod(left, right)


@primitive("modulo")
def modulo(left: Any, right: Any) -> int | float:
    if _integers("modulo", left, right):
        return left % right
    left, right = to_float(left), to_float(right)
    rest = _float_remainder(left, right)
    return rest + right if rest and (rest < 0) != (right < 0) else rest


@primitive("expt")
def expt(base: Any, exponent: Any) -> Number:
    want_number("expt", base)
    want_number("expt", exponent)
    if type(base) is float or type(exponent) is not int:
        return _power(to_float(base), to_float(exponent))
    if exponent < 0 and base == 0:
        raise PurpleError(messages.DIVISION, "arithmetic")
    if base in (0, 1, -1):
        return base ** (abs(exponent) if abs(exponent) < 2 else 2 + exponent % 2)
    longest = max(abs(base.numerator), base.denominator).bit_length()
    if (longest - 1) * abs(exponent) > MOST_BITS:
        raise overflow()
    power = fit(base ** abs(exponent))
    return power if exponent >= 0 else fit(Fraction(1) / power)


def _power(base: float, exponent: float) -> float:
    """C's `pow`: no exceptions, nan for the root of a negative number."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent == math.floor(exponent) and math.fmod(exponent, 2) != 0
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base == 0:
            odd = math.fmod(exponent, 2) in (1.0, -1.0)
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


def _real(name: str, function: Callable[[float], float], overflow: float = math.inf) -> None:
    def call(value: Any) -> float:
        want_number(name, value)
        try:
            return function(to_float(value))
        except OverflowError:
            return overflow
        except ValueError:
            return math.nan

    primitive(name)(call)


for _name, _function in (
    ("exp", math.exp),
    ("sin", math.sin),
    ("cos", math.cos),
    ("tan", math.tan),
    ("asin", math.asin),
    ("acos", math.acos),
):
    _real(_name, _function)


def _logarithm(name: str, value: Any) -> float:
    number = to_float(want_number(name, value))
    if math.isinf(number) and number > 0 and type(value) is int:  # by its upper bits
        cut = 32 * ((value.bit_length() + 31) // 32 - 3)
        return math.log(float(value >> cut)) + cut * math.log(2)
    if number == 0:
        return -math.inf
    return math.log(number) if number > 0 else math.nan


@primitive("log")
def log(value: Any, base: Any = None) -> float:
    found = _logarithm("log", value)
    return found if base is None else _divide(found, _logarithm("log", base))


@primitive("atan")
def atan(y: Any, x: Any = None) -> float:
    over = to_float(want_number("atan", y))
    return math.atan(over) if x is None else math.atan2(over, to_float(want_number("atan", x)))


@primitive("sqrt")
def sqrt(value: Any) -> Number:
    want_number("sqrt", value)
    if value != value or value < 0:
        return math.nan
    if type(value) is not float:
        root = whole(Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator)))
        if root * root == value:
            return root
    return math.sqrt(to_float(value))


@primitive("%integer-root")
def integer_root(value: Any) -> int:
    if want_integer("exact-integer-sqrt", value) < 0:
        raise PurpleError("exact-integer-sqrt: a negative number has no root", "arithmetic")
    return math.isqrt(value)


def _rounding(name: str, function: Callable[[Any], Any]) -> None:
    def call(value: Any) -> Number:
        want_number(name, value)
        if type(value) is not float:
            return function(value)
        if not math.isfinite(value):
            return value
        return math.copysign(float(function(value)), value)

    primitive(name)(call)


for _name, _round in (
    ("floor", math.floor),
    ("ceiling", math.ceil),
    ("round", round),
    ("truncate", math.trunc),
):
    _rounding(_name, _round)


@primitive("abs")
def absolute(value: Any) -> Number:
    want_number("abs", value)
    return abs(value)


def _extreme(name: str, better: Callable[[Any, Any], bool]) -> None:
    def call(first: Any, *others: Any) -> Number:
        best = want_number(name, first)
        floats = type(first) is float
        for other in others:
            want_number(name, other)
            floats = floats or type(other) is float
            if other != other or better(other, best):
                best = other if best == best else best
        return to_float(best) if floats else best

    primitive(name)(call)


_extreme("min", operator.lt)
_extreme("max", operator.gt)


def _finite(value: Any) -> bool:
    return type(value) is not float or math.isfinite(value)


@primitive("->int")
def to_int(value: Any) -> int:
    if not _finite(want_number("->int", value)):
        raise overflow()
    return int(value)


@primitive("->float")
def as_float(value: Any) -> float:
    return to_float(want_number("->float", value))


@primitive("exact")
def exact(value: Any) -> Number:
    if not _finite(want_number("exact", value)):
        wrong_type("exact", "finite", value)
    return whole(Fraction(value))


def _part(name: str) -> None:
    def call(value: Any) -> int:
        if not is_exact(value):
            wrong_type(name, "number", value)
        return getattr(value, name)

    primitive("%" + name)(call)


_part("numerator")
_part("denominator")


@primitive("number?")
def is_number(value: Any) -> bool:
    return type(value) in NUMBERS


@primitive("exact-integer?")
def is_integer(value: Any) -> bool:
    return type(value) is int


@primitive("exact-rational?")
def is_exact(value: Any) -> bool:
    return type(value) is int or type(value) is Fraction


@primitive("float?")
def is_float(value: Any) -> bool:
    return type(value) is float


def _bits(name: str, function: Callable[[int, int], int]) -> None:
    primitive(name)(lambda left, right: function(want_integer(name, left), want_integer(name, right)))


_bits("bitwise-and", operator.and_)
_bits("bitwise-or", operator.or_)
_bits("bitwise-xor", operator.xor)


@primitive("arithmetic-shift")
def arithmetic_shift(value: Any, count: Any) -> int:
    want_integer("arithmetic-shift", value)
    want_integer("arithmetic-shift", count)
    if count <= 0:
        return value >> min(-count, MOST_BITS)
    if value == 0:
        return 0
    if value.bit_length() + count > MOST_BITS:
        raise overflow()
    return value << count


def want_radix(name: str, radix: Any) -> int:
    if want_int(name, radix) not in DIGITS:
        raise PurpleError(messages.wrong_radix(name, radix), "index")
    return radix


@primitive("number->string")
def number_to_string(value: Any, radix: Any = 10) -> str:
    want_number("number->string", value)
    if want_radix("number->string", radix) == 10 or type(value) is float:
        return display_text(value)
    letter = {2: "b", 8: "o", 16: "x"}[radix]
    over = format(value.numerator, letter)
    return over if type(value) is int else f"{over}/{format(value.denominator, letter)}"


@primitive("string->number")
def string_to_number(text: Any, radix: Any = 10) -> Number | bool:
    want("string->number", "string", str, text)
    try:
        number = numeral(text, want_radix("string->number", radix))
    except TooLarge:
        return False
    return False if number is None else number


@primitive("number->fixed")
def number_to_fixed(value: Any, digits: Any) -> str:
    want_number("number->fixed", value)
    if not 0 <= want_int("number->fixed", digits) <= 100:
        raise PurpleError(messages.out_of_range("number->fixed", digits, 101), "index")
    return f"{to_float(value):.{digits}f}"
