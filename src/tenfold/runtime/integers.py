"""Integers among a call's arguments that change from call to call, such as a position in a cache.

What is no tensor is part of a call's signature: each value has a program of its own. An integer that has
taken a second value becomes the size of a stand-in, a tensor without data with so many elements. So it is
open as sizes are (`sizes.py`), and while the function is recorded, it is a watched number like a size. Only
arguments themselves become stand-ins, not what is in containers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.flat.ir import TensorType
from tenfold.trace.graph import Value

Place = int | str  # of an argument: its position, or its name
LIMIT = 1 << 31  # sizes are 32-bit numbers in a program


class Name(str):
    """What the user calls an argument that is an integer: the source of its stand-in's value."""

    __slots__ = ()


def _name(place: Place) -> Name:
    return Name(f"argument {f'`{place}`' if isinstance(place, str) else place}")


def _value(number: int, place: Place) -> Value:
    """The value of a stand-in."""
    value = Value(TensorType(dtypes.int8, (number,)), Device("cpu"))
    value.source = _name(place)
    return value


def name_of(value: Value) -> Name | None:
    """The name of the integer that a value stands for; None of other values."""
    return value.source if type(value.source) is Name else None


class IntegerArguments:
    """Which integers among a function's arguments change."""

    __slots__ = ("_first", "_fixed", "change", "changing")

    def __init__(self) -> None:
        self.changing: set[Place] = set()
        self._first: dict[Place, int] = {}  # the values that they had first
        self._fixed: set[Place] = set()  # where a change takes another program
        self.change = ""  # how one changed for the first time, until that is asked for

    def notice(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Compare the integers of a call with those of the first one; whether more of them change now."""
        before = len(self.changing)
        for place, number in _integers(args, kwargs):
            first = self._first.setdefault(place, number)
            if first != number and place not in self._fixed | self.changing:
                self.changing.add(place)
                self.change = f"{_name(place)} was {first} and is {number}"
        return len(self.changing) > before

    def fix(self) -> None:
        """Take no integer for a size any more that changes now: the function is another program for each."""
        self._fixed |= self.changing
        self.changing.clear()

    def replaced(self, args: tuple, kwargs: dict[str, Any], tensor: Any) -> tuple[tuple, dict[str, Any]]:
        """The arguments with stand-ins, which are of the class `tensor`, for integers that change."""
        numbers = {
            place: number
            for place, number in _integers(args, kwargs)
            if place in self.changing and 0 <= number < LIMIT
        }
        stand_in = lambda place, value: tensor(_value(value, place)) if place in numbers else value
        return (
            tuple([stand_in(place, value) for place, value in enumerate(args)]),
            {name: stand_in(name, value) for name, value in kwargs.items()},
        )

    def first(self, tensors: Sequence[Any]) -> list[tuple[int, ...]] | None:
        """The shapes of tensors, with the integers of the first call in the places of those that stand-ins
        have; None if there are no stand-ins."""
        numbers = {_name(place): number for place, number in self._first.items()}
        names = [name_of(tensor._value) for tensor in tensors]
        if not any(names):
            return None
        return [
            (numbers[name],) if name else tuple(tensor.shape)
            for tensor, name in zip(tensors, names, strict=True)
        ]


def _integers(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[tuple[Place, int]]:
    places: Iterable[tuple[Place, Any]] = (*enumerate(args), *kwargs.items())
    for place, value in places:
        if type(value) is int:
            yield place, value
