"""Arithmetic, comparisons and conversions of Python numbers and texts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tenfold.base.errors import ArgumentError, DivisionByZero
from tenfold.ops.plain.table import plain


def _declare(
    name: str, function: Callable[..., Any], overloads: str, result: str = "", arguments: str = "a b"
) -> None:
    """Rows of one function on numbers, for overloads such as "int float int_float Scalar".

    The default overload takes Scalars; one of two kinds has them in this order. Without a `result` kind the
    result is an int for ints alone, and a float else.
    """
    for overload in overloads.split():
        kinds = ["Scalar", "Scalar"] if overload == "default" else overload.split("_")
        kinds = kinds * 2 if len(kinds) == 1 else kinds
        gives = result or ("Scalar" if "Scalar" in kinds else "float" if "float" in kinds else kinds[0])
        taken = ", ".join(f"{kind} {each}" for kind, each in zip(kinds, arguments.split(), strict=False))
        dotted = "" if overload == "default" else f".{overload}"
        plain(f"{name}{dotted}({taken}) -> {gives}")(function)


def _dividing(function: Callable[..., Any]) -> Callable[..., Any]:
    def divide(a: Any, b: Any) -> Any:
        try:
            return function(a, b)
        except ZeroDivisionError:
            raise DivisionByZero(f"{a} is divided by zero") from None

    return divide


NUMBERS = "int float int_float float_int default"
for _name, _function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
    _declare(_name, _function, NUMBERS)
_declare("div", _dividing(operator.truediv), "int float default", "float")
_declare("floordiv", _dividing(operator.floordiv), NUMBERS)
_declare("remainder", _dividing(operator.mod), NUMBERS)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _declare(_name, getattr(operator, _name), NUMBERS, "bool")
_declare("neg", operator.neg, "int float Scalar", "", "a")
for _name in ("eq", "ne"):
    plain(f"{_name}.bool(bool a, bool b) -> bool", f"{_name}.str(str a, str b) -> bool")(
        getattr(operator, _name)
    )
plain("add.str(str a, str b) -> str")(operator.add)
plain("prim::max.int(int a, int b) -> int", "prim::max.float(float a, float b) -> float")(max)
plain("prim::min.int(int a, int b) -> int", "prim::min.float(float a, float b) -> float")(min)
plain(
    "prim::abs.int(int a) -> int", "prim::abs.float(float a) -> float", "prim::abs.Scalar(Scalar a) -> Scalar"
)(abs)
plain("Bool.int(int a) -> bool", "Bool.float(float a) -> bool")(bool)
plain("Float.Scalar(Scalar a) -> float", "Float.int(int a) -> float", "Float.bool(bool a) -> float")(float)
plain("__and__.bool(bool a, bool b) -> bool")(operator.and_)
plain("__or__.bool(bool a, bool b) -> bool")(operator.or_)
plain("__xor__.bool(bool a, bool b) -> bool")(operator.xor)
plain("__and__.int(int a, int b) -> int")(operator.and_)
plain("__or__.int(int a, int b) -> int")(operator.or_)
plain("__xor__.int(int a, int b) -> int")(operator.xor)
plain("__lshift__.int(int a, int b) -> int")(operator.lshift)
plain("__rshift__.int(int a, int b) -> int")(operator.rshift)
plain("__not__(bool self) -> bool")(operator.not_)
plain("__is__(t1 self, t2 obj) -> bool")(operator.is_)
plain("__isnot__(t1 self, t2 obj) -> bool")(operator.is_not)


@plain("Float.str(str a) -> float")
def float_from_text(a: str) -> float:
    """The number that a text writes."""
    return _from_text(a, float, "number")


@plain("Int.str(str a) -> int")
def int_from_text(a: str) -> int:
    """The whole number that a text writes."""
    return _from_text(a, int, "whole number")


def _from_text(a: str, read: Callable[[str], Any], what: str) -> Any:
    try:
        if a == a.rstrip() and "_" not in a:  # which Python reads past, and ATen does not
            return read(a)
    except ValueError:
        pass
    raise ArgumentError(f"{a!r} is no {what}")


def _whole(function: Callable[[Any], int]) -> Callable[[Any], int]:
    """A function that gives a whole number, which infinities and NaN have none of."""

    def compute(a: Any) -> int:
        try:
            return function(a)
        except (OverflowError, ValueError):
            raise ArgumentError(f"{a} has no whole number") from None

    return compute


for _name, _rounded in (("ceil", math.ceil), ("floor", math.floor)):
    plain(
        f"{_name}.int(int a) -> int", f"{_name}.float(float a) -> int", f"{_name}.Scalar(Scalar a) -> Scalar"
    )(_whole(_rounded))
plain("Int.Scalar(Scalar a) -> int", "Int.bool(bool a) -> int", "Int.float(float a) -> int")(_whole(int))


def _real(function: Callable[[float], float]) -> Callable[[Any], float]:
    """A function of one real number, NaN outside of where it is defined, and -inf for the logarithm of 0."""

    def compute(a: Any) -> float:
        try:
            return function(a)
        except ValueError:
            return -math.inf if a == 0 else math.nan

    return compute


for _name in ("sqrt", "log"):
    _compute = _real(getattr(math, _name))
    _declare(_name, _compute, "int float", "float", "a")
    plain(f"{_name}.Scalar(Scalar a) -> Scalar")(_compute)


@plain(
    "pow.int(int a, int b) -> float",
    "pow.float(float a, float b) -> float",
    "pow.int_float(int a, float b) -> float",
    "pow.float_int(float a, int b) -> float",
)
def power(a: Any, b: Any) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf if a > 0 or b % 2 == 0 else -math.inf
    except ValueError:  # zero to a negative power, or a root of a negative number
        return math.nan if a else math.inf


@plain("__derive_index(int index, int start, int step) -> int")
def derive_index(index: int, start: int, step: int) -> int:
    """What a loop over range(start, …, step) has in round `index`."""
    return start + index * step


@plain("__range_length(int lo, int hi, int step) -> int")
def range_length(lo: int, hi: int, step: int) -> int:
    """How many rounds a loop over range(lo, hi, step) has."""
    if step == 0:
        raise ArgumentError("the step of a range must not be zero")
    return len(range(lo, hi, step))
