"""Sizes that remember what Python asks of them.

A function whose sizes are open is recorded at a few of them. What it decides by a size in Python, such as
`if n % 5 == 0`, leaves no trace in the recordings where it comes out the same, and may come out otherwise at
another size. So the sizes that the user's code reads meanwhile are watched numbers: arithmetic makes watched
numbers of them, and whatever else is asked of them is noted. Tenfold's own code reads plain sizes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from sys import _getframe
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from tenfold.base import size
from tenfold.base.source import is_internal

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
BINARY = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")},
    **{name: getattr(operator, name) for name in ("lshift", "rshift")},
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
# Of these the result is noted: it may be the same at the recorded sizes, and another at others.
STEPPED = ("floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor")
UNARY = {name: getattr(operator, name) for name in ("neg", "pos", "abs")}
# What takes the number out of sight: as a place in a list, a key, a text, a number of another type.
ESCAPES: dict[str, Callable[..., Any]] = {
    "__index__": operator.index,
    "__hash__": hash,
    "__int__": int,
    "__float__": float,
    "__complex__": complex,
    "__str__": str,
    "__repr__": repr,
    "__format__": format,
    "__round__": round,
    "__trunc__": math.trunc,
    "__floor__": math.floor,
    "__ceil__": math.ceil,
}


class Asked(NamedTuple):
    """Something that the user's code asked of a size: `what` is a comparison with `other`, or how the number
    left our sight."""

    what: str
    number: Any
    other: Any = None
    answer: Any = None


class Watched:
    """A size, or a number that was made from sizes. It passes for an int or a float."""

    __slots__ = ("asked", "number")

    def __init__(self, number: Any, asked: list[Asked]):
        self.number = number
        self.asked = asked

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.number)

    def __bool__(self) -> bool:
        note(self.asked, Asked("ne", self.number, 0, self.number != 0), 2)
        return bool(self.number)

    def __divmod__(self, other: Any) -> Any:
        note(self.asked, Asked("divmod", self.number, plain(other)), 2)
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        note(self.asked, Asked("divmod", other, self.number), 2)
        return other // self, other % self

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        note(self.asked, Asked("__array__", self.number), 2)
        return np.asarray(self.number, dtype)

    def __getattr__(self, name: str) -> Any:
        note(self.asked, Asked(name, self.number), 2)
        return getattr(self.number, name)

    def __reduce__(self) -> Any:
        return plain, (self.number,)


def plain(value: Any) -> Any:
    """A value with plain numbers in the places of watched ones."""
    kind = type(value)
    if kind is Watched:
        return value.number
    if kind is slice:
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    if kind is list:
        return [plain(each) for each in value]
    if kind is dict:
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        numbers = [plain(each) for each in value]
        return kind(*numbers) if hasattr(value, "_fields") else kind(numbers)
    return value


def watched(sizes: tuple[int, ...], asked: list[Asked], depth: int) -> tuple[int, ...]:
    """Sizes as the code `depth` frames above is to see them: the user's sees watched ones."""
    if is_internal(_getframe(depth).f_code.co_filename):
        return sizes
    numbers: Any = tuple([Watched(size, asked) for size in sizes])
    return numbers


def note(asked: list[Asked], what: Asked, depth: int) -> None:
    """Note what the code `depth` frames above has asked, if it is the user's, also by way of a shape."""
    frame: FrameType | None = _getframe(depth)
    while frame is not None and frame.f_code.co_filename == size.__file__:
        frame = frame.f_back
    if frame is not None and not is_internal(frame.f_code.co_filename):
        asked.append(what)


def _compared(name: str) -> Callable[[Watched, Any], Any]:
    compare = COMPARISONS[name]

    def method(self: Watched, other: Any) -> Any:
        other = plain(other)
        if not isinstance(other, (int, float, complex)):
            return NotImplemented
        answer = compare(self.number, other)
        note(self.asked, Asked(name, self.number, other, answer), 2)
        return answer

    return method


def _computed(name: str, compute: Callable[..., Any], turned: bool = False) -> Callable[..., Any]:
    def method(self: Watched, *others: Any) -> Any:
        numbers = [self.number, *[plain(other) for other in others]]
        if not all(isinstance(number, (int, float, complex)) for number in numbers):
            return NotImplemented
        result = compute(*(reversed(numbers) if turned else numbers))
        if name in STEPPED:
            note(self.asked, Asked(name, numbers[0], numbers[1], result), 2)
        return Watched(result, self.asked)

    return method


def _escaping(name: str) -> Callable[..., Any]:
    leave = ESCAPES[name]

    def method(self: Watched, *others: Any) -> Any:
        note(self.asked, Asked(name, self.number), 2)
        return leave(self.number, *others)

    return method


for _name in COMPARISONS:
    setattr(Watched, f"__{_name}__", _compared(_name))
for _name, _compute in UNARY.items():
    setattr(Watched, f"__{_name}__", _computed(_name, _compute))
for _name, _compute in BINARY.items():
    setattr(Watched, f"__{_name}__", _computed(_name, _compute))
    setattr(Watched, f"__r{_name}__", _computed(_name, _compute, turned=True))
for _name in ESCAPES:
    setattr(Watched, _name, _escaping(_name))
