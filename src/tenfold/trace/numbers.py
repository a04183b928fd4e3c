"""Numbers that come from tensors while a function is recorded for export.

The value of `x.item()` is not known then. A mark, an integer that no program uses, stands for it until an op
takes it. There the tensor that it came from takes its place, as one more input of the node. An op that needs
the value itself, as a size, gets a number that the recording assumes for it. The function is recorded several
times, with another number each time, so that one can tell what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.base.late import on_first_use
from tenfold.ops.callee import OpCall
from tenfold.ops.table import Row
from tenfold.trace.counts import Count
from tenfold.trace.graph import Value

with on_first_use(__name__):
    import random


LEAST = 2  # of numbers that are sizes, unless less is promised: sizes of 0 and 1 make other programs
FAR = 64  # from the least number, where a recording takes one for
FIRST = 1 << 52  # from here on to twice that all integers are floats, too


class Numbers:
    """The numbers of one recording, by their marks. By their places, `taken` says what those that are sizes
    are taken for; without it none may be one."""

    def __init__(self, taken: Mapping[int, int] | None = None) -> None:
        self.taken = taken
        self.sizes: list[Count] = []
        self.items: dict[Value, Any] = {}  # the number that was asked for in each tensor
        self._next = FIRST + random.Random().getrandbits(51)
        self._marked: dict[int, tuple[Value, Callable[[], int] | None]] = {}

    def mark(self, value: Value, size: Callable[[], int] | None = None) -> int:
        """A number that stands for the one in a tensor without dimensions; `size` tells what it is taken for
        where it must be known."""
        self._next += 1
        self._marked[self._next] = value, size
        return self._next

    def size(self, value: Value, least: int | None, most: int | None, source: Any) -> int:
        """What the number in a tensor is taken for, which lies between these."""
        if self.taken is None:
            raise _must_beknown("a slice")
        place = next((i for i, size in enumerate(self.sizes) if size.value is value), len(self.sizes))
        if place == len(self.sizes):
            low = LEAST if least is None else max(least, 1)
            high = low + FAR if most is None else most
            if low >= high:
                return high  # a number that is known
            size = self.taken.get(place, random.Random(place).randint((low + high + 1) // 2, high))
            self.sizes.append(Count(value, size, high, most is not None, "item", source, low))
        return self.sizes[place].size

    def find(self, argument: Any) -> Value | None:
        """The tensor that a number stands for; None if it is a plain one."""
        if type(argument) in (int, float) and argument >= FIRST:
            return self._marked.get(int(argument), (None,))[0]
        return None

    def call(self, row: Row, inputs: list[Value], arguments: tuple[Any, ...]) -> OpCall | None:
        """The call of an op that takes marked numbers, which become inputs; None if there are none."""
        if not self._marked:
            return None
        places = {
            i: value for i, argument in enumerate(arguments) if (value := self.find(argument)) is not None
        }
        hides = any(i not in places and self._hides(argument) for i, argument in enumerate(arguments))
        if not places and not hides:
            return None
        if hides:
            arguments = tuple(
                [
                    argument if i in places else self.known(argument, row)
                    for i, argument in enumerate(arguments)
                ]
            )
        types = tuple([operand.type for operand in inputs])
        callee = row.late_call(types, arguments, tuple(places)) if places else None
        if callee is None:
            arguments = tuple([self.known(argument, row) for argument in arguments])
            try:
                return row.call(types, arguments)
            except TenfoldError as error:
                told = ", ".join([f"{size.size}" for size in self.sizes])
                raise type(error)(
                    f"a number that comes from a tensor is taken for {told} here: {error.message}",
                    help="say what it can be: torch._check(n <= …)",
                ) from None
        inputs += places.values()
        return callee

    def known(self, argument: Any, row: Row) -> Any:
        """An argument with what numbers are taken for in the places of marks."""
        if isinstance(argument, tuple):
            return tuple([self.known(element, row) for element in argument])
        if self.find(argument) is None:
            return argument
        size = self._marked[int(argument)][1]
        if size is None or self.taken is None:
            raise _must_beknown(row.python_name)
        return size()

    def _hides(self, argument: Any) -> bool:
        if isinstance(argument, Sequence) and not isinstance(argument, str):
            return any(map(self._hides, argument))
        return self.find(argument) is not None


def _must_beknown(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} must know a number that comes from a tensor when it is exported",
        help="such a number may be a factor, a summand, a value to fill with, or an int that is a size",
    )
