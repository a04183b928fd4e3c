"""Numbers: 64-bit integers whose overflow is an error, and floats. The operators take tensors too."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tenfold.base.errors import TenfoldError
from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.numerals import DIGITS, LARGEST, SMALLEST, TooLarge, numeral
from tenfold.purple.prims.refused import refusal
from tenfold.purple.prims.registry import primitive, want, want_int, want_number, wrong_type
from tenfold.purple.printing import display_text
from tenfold.tensor import Tensor

NUMBERS = (int, float)


def fit(value: int) -> int:
    if SMALLEST <= value <= LARGEST:
        return value
    raise PurpleError(messages.OVERFLOW, "arithmetic")


def operands(name: str, left: Any, right: Any) -> bool:
    """Whether both are numbers; False when a tensor is among them. Anything else is an error."""
    left_number, right_number = type(left) in NUMBERS, type(right) in NUMBERS
    if left_number and right_number:
        return True
    for value, is_number in ((left, left_number), (right, right_number)):
        if not is_number and not isinstance(value, Tensor):
            wrong_type(name, "number*", value)
    return False


def on_tensors(name: str, apply: Callable[..., Any], *operands: Any) -> Any:
    """An operator on tensors, and numbers beside them: a tensor knows the operator turned round."""
    try:
        return apply(*operands)
    except TenfoldError as error:
        raise refusal(name, error, operands, {}) from None


def _fold(name: str, apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def two(left: Any, right: Any) -> Any:
        if not operands(name, left, right):
            return on_tensors(name, apply, left, right)
        value = apply(left, right)
        return fit(value) if type(value) is int else value

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
        value = on_tensors("-", operator.neg, _alone("-", first))
        return fit(value) if type(value) is int else value
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
    if type(left) is int and type(right) is int:
        if right == 0:
            raise PurpleError(messages.DIVISION, "arithmetic")
        return fit(left // right) if left % right == 0 else float(left) / float(right)
    left, right = float(left), float(right)
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
    want_int("quotient", left)
    if want_int("quotient", right) == 0:
        raise PurpleError(messages.DIVISION, "arithmetic")
    whole = abs(left) // abs(right)
    return fit(whole if (left < 0) == (right < 0) else -whole)


@primitive("%")
def remainder(left: Any, right: Any) -> int | float:
    want_number("%", left)
    want_number("%", right)
    if type(left) is int and type(right) is int:
        if right == 0:
            raise PurpleError(messages.DIVISION, "arithmetic")
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    if right == 0 or math.isinf(left) or left != left or right != right:
        return math.nan
    return math.fmod(left, right)


@primitive("modulo")
def modulo(left: Any, right: Any) -> int | float:
    want_number("modulo", left)
    want_number("modulo", right)
    if type(left) is int and type(right) is int:
        if right == 0:
            raise PurpleError(messages.DIVISION, "arithmetic")
        return left % right
    if right == 0 or math.isinf(left) or left != left or right != right:
        return math.nan
    rest = math.fmod(left, right)
    return rest + right if rest and (rest < 0) != (right < 0) else rest


@primitive("expt")
def expt(base: Any, exponent: Any) -> int | float:
    want_number("expt", base)
    want_number("expt", exponent)
    if type(base) is int and type(exponent) is int and exponent >= 0:
        if abs(base) > 1 and exponent > 63:
            raise PurpleError(messages.OVERFLOW, "arithmetic")
        return fit(base**exponent)
    return _power(float(base), float(exponent))


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
            return function(float(value))
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


def _logarithm(value: float) -> float:
    if value == 0:
        return -math.inf
    return math.log(value) if value > 0 else math.nan


@primitive("log")
def log(value: Any, base: Any = None) -> float:
    found = _logarithm(float(want_number("log", value)))
    if base is None:
        return found
    under = _logarithm(float(want_number("log", base)))
    return _divide(found, under)


@primitive("atan")
def atan(y: Any, x: Any = None) -> float:
    want_number("atan", y)
    return math.atan(y) if x is None else math.atan2(y, want_number("atan", x))


@primitive("sqrt")
def sqrt(value: Any) -> int | float:
    want_number("sqrt", value)
    if value != value or value < 0:
        return math.nan
    if type(value) is int:
        root = math.isqrt(value)
        if root * root == value:
            return root
    return math.sqrt(value)


def _rounding(name: str, function: Callable[[float], float]) -> None:
    def call(value: Any) -> int | float:
        want_number(name, value)
        if type(value) is int or not math.isfinite(value):
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
def absolute(value: Any) -> int | float:
    want_number("abs", value)
    return fit(abs(value)) if type(value) is int else abs(value)


def _extreme(name: str, better: Callable[[Any, Any], bool]) -> None:
    def call(first: Any, *others: Any) -> int | float:
        best = want_number(name, first)
        floats = type(first) is float
        for each in others:
            want_number(name, each)
            floats = floats or type(each) is float
            if each != each or better(each, best):
                best = each if best == best else best
        return float(best) if floats else best

    primitive(name)(call)


_extreme("min", operator.lt)
_extreme("max", operator.gt)


@primitive("->int")
def to_int(value: Any) -> int:
    want_number("->int", value)
    if type(value) is float and not math.isfinite(value):
        raise PurpleError(messages.OVERFLOW, "arithmetic")
    return fit(int(value))


@primitive("->float")
def to_float(value: Any) -> float:
    return float(want_number("->float", value))


@primitive("number?")
def is_number(value: Any) -> bool:
    return type(value) in NUMBERS


@primitive("exact-integer?")
def is_integer(value: Any) -> bool:
    return type(value) is int


@primitive("float?")
def is_float(value: Any) -> bool:
    return type(value) is float


def _bits(name: str, function: Callable[[int, int], int]) -> None:
    primitive(name)(lambda left, right: function(want_int(name, left), want_int(name, right)))


_bits("bitwise-and", operator.and_)
_bits("bitwise-or", operator.or_)
_bits("bitwise-xor", operator.xor)


@primitive("arithmetic-shift")
def arithmetic_shift(value: Any, count: Any) -> int:
    want_int("arithmetic-shift", value)
    want_int("arithmetic-shift", count)
    if count <= 0:
        return value >> min(-count, 63)
    if count > 63:
        return 0 if value == 0 else fit(LARGEST + 1)
    return fit(value << count)


def want_radix(name: str, radix: Any) -> int:
    if want_int(name, radix) not in DIGITS:
        raise PurpleError(messages.wrong_radix(name, radix), "index")
    return radix


@primitive("number->string")
def number_to_string(value: Any, radix: Any = 10) -> str:
    want_number("number->string", value)
    if want_radix("number->string", radix) == 10 or type(value) is float:
        return display_text(value)
    return format(value, {2: "b", 8: "o", 16: "x"}[radix])


@primitive("string->number")
def string_to_number(text: Any, radix: Any = 10) -> int | float | bool:
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
    return f"{float(value):.{digits}f}"
