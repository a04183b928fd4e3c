"""How a primitive is declared, and how its arguments are checked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.numerals import LARGEST, SMALLEST, Number
from tenfold.purple.printing import brief
from tenfold.purple.values import NIL, Pair

REGISTRY: dict[str, Callable[..., Any]] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


def primitive(name: str) -> Callable[[Function], Function]:
    def declare(function: Function) -> Function:
        function.purple_name = name  # type: ignore[attr-defined]
        REGISTRY[name] = function
        return function

    return declare


def alias(name: str, function: Callable[..., Any]) -> None:
    """Declare a Python function of C's, which can carry no name of its own, as a primitive."""
    primitive(name)(lambda *arguments: function(*arguments))


def wrong_type(name: str, kind: str, value: Any) -> NoReturn:
    raise PurpleError(messages.wrong_type(name, kind, brief(value)), "type")


def want_integer(name: str, value: Any) -> int:
    if type(value) is not int:
        wrong_type(name, "int", value)
    return value


def want_int(name: str, value: Any) -> int:
    """An integer of 64 bits, which counts, indices and sizes are."""
    if not is_machine_int(want_integer(name, value)):
        too_wide(name, value)
    return value


def is_machine_int(value: int) -> bool:
    return SMALLEST <= value <= LARGEST


def too_wide(name: str, value: int) -> NoReturn:
    raise PurpleError(messages.too_wide(name, brief(value)), "arithmetic")


def want_number(name: str, value: Any) -> Number:
    if type(value) is not int and type(value) is not float and type(value) is not Fraction:
        wrong_type(name, "number", value)
    return value


def want_string(name: str, value: Any) -> str:
    if type(value) is not str:
        wrong_type(name, "string", value)
    return value


def want_list(name: str, value: Any) -> list[Any]:
    """The elements of a proper list, as a Python list."""
    items: list[Any] = []
    rest, passed, until = value, NIL, 8
    while type(rest) is Pair:
        items.append(rest.car)
        rest = rest.cdr
        if rest is passed:  # the end, or where a list that holds itself was before
            break
        if len(items) == until:
            passed, until = rest, 2 * until
    if rest is not NIL:
        wrong_type(name, "list", value)
    return items


def want(name: str, kind: str, python_type: type, value: Any) -> Any:
    if type(value) is not python_type:
        wrong_type(name, kind, value)
    return value


def part(name: str, items: Any, start: Any, end: Any) -> Any:
    """The elements from a start up to an end; None stands for one that is not given."""
    end = len(items) if end is None else in_range(name, end, len(items), end=True)
    start = 0 if start is None else in_range(name, start, len(items), end=True)
    if start > end:
        raise PurpleError(messages.reversed_range(name, start, end), "index")
    return items[start:end]


def in_range(name: str, index: Any, length: int, end: bool = False) -> int:
    """An index from 0 up to the length; with `end` the length itself too."""
    want_int(name, index)
    if not 0 <= index < length + end:
        raise PurpleError(messages.out_of_range(name, index, length), "index")
    return index
