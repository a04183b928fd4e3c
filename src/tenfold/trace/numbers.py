"""Numbers that come from tensors while a function is recorded for export.

The value of `x.item()` is not known then. A mark, an integer that no program uses, stands for it until an op
takes it. There the tensor that it came from takes its place, as one more input of the node.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.ops.callee import OpCall
from tenfold.ops.table import Row
from tenfold.trace.graph import Value

FIRST = 1 << 52  # from here on to twice that all integers are floats, too


class Numbers:
    """The numbers of one recording, by their marks."""

    def __init__(self) -> None:
        self._next = FIRST + random.Random().getrandbits(51)
        self._values: dict[int, Value] = {}

    def mark(self, value: Value) -> int:
        """A number that stands for the one in a tensor without dimensions."""
        self._next += 1
        self._values[self._next] = value
        return self._next

    def find(self, argument: Any) -> Value | None:
        """The tensor that a number stands for; None if it is a plain one."""
        if type(argument) in (int, float) and argument >= FIRST:
            return self._values.get(int(argument))
        return None

    def call(self, row: Row, inputs: list[Value], arguments: tuple[Any, ...]) -> OpCall | None:
        """The call of an op that takes marked numbers, which become inputs; None if there are none."""
        if not self._values:
            return None
        places = {
            i: value for i, argument in enumerate(arguments) if (value := self.find(argument)) is not None
        }
        hidden = [
            argument for i, argument in enumerate(arguments) if i not in places and self._hides(argument)
        ]
        if not places and not hidden:
            return None
        types = tuple([operand.type for operand in inputs])
        callee = None if hidden else row.late_call(types, arguments, tuple(places))
        if callee is None:
            raise UnsupportedError(
                f"{row.python_name} must know a number that comes from a tensor when it is exported",
                help="such a number may be a factor, a summand or a value to fill with, but not a size",
            )
        inputs += places.values()
        return callee

    def _hides(self, argument: Any) -> bool:
        if isinstance(argument, Sequence) and not isinstance(argument, str):
            return any(map(self._hides, argument))
        return self.find(argument) is not None
