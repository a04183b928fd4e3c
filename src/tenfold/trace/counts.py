"""Sizes that depend on data, as they come up while a function is recorded.

The function is recorded several times; in each recording such a size is taken for another number, so that
what follows from it can be told from what does not (`runtime/opened.py`). The number itself is one more
result of the recorded program. Sizes that are counted alike from the same values are one size: `x[mask]` and
`y[mask]` have equally many elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tenfold.base.late import on_first_use
from tenfold.trace.graph import Value

with on_first_use(__name__):
    import random


Results = TypeVar("Results")
SMALLEST = 64  # of the powers of two below which a size is taken


class Count(NamedTuple):
    """A size that depends on data."""

    value: Value  # the number, computed by the function
    size: int  # what the recording takes it for
    bound: int  # how many elements there is room for
    bounded: bool  # whether there cannot be more, by the types of what it is counted from
    what: str
    source: Any
    least: int = 0


class Counts:
    """The data-dependent sizes of one recording. `turn` says which recording this is. By their places, `room`
    says how many elements of some there were, and `fixed` what some of them are to be taken for."""

    def __init__(
        self, turn: int, room: Mapping[int, int] | None = None, fixed: Mapping[int, int] | None = None
    ):
        self.turn = turn
        self.room = room or {}
        self.fixed = fixed or {}
        self.found: list[Count] = []
        self.arguments: list[tuple[Value, Any]] = []  # values without data, and what they stand for
        self._places: dict[Any, int] = {}
        self._numbers: dict[Any, int] = {}
        self._known: dict[Value, int] = {}

    def take(
        self,
        counted: tuple[Any, ...],
        values: Sequence[Value],
        bound: int | None,
        make: Callable[[int], tuple[Results, Value]],
        where: tuple[str, Any],
    ) -> Results:
        """What `make` records for a size, and with it the value that tells the size; `counted` says by what
        op and arguments it is counted from the values."""
        key = (*counted, *[self._number(value) for value in values])
        if bound == 0:
            return make(0)[0]  # whatever the data are
        place = self._places.setdefault(key, len(self.found))
        if place < len(self.found):
            return make(self.found[place].size)[0]
        bounded = bound is not None
        if bound is None:
            bound = _power(
                max(SMALLEST, self.room.get(place, 2 * sum([value.type.numel for value in values])))
            )
        size = self.fixed.get(place)
        if size is None:
            # Between two powers of two, where ops that are lowered in rounds have equally many.
            high = _power(max(SMALLEST, bound))
            size = random.Random(f"{self.turn} {place}").randint(high // 2 + 1, high)
        results, value = make(size)
        self.found.append(Count(value, size, bound, bounded, *where))
        return results

    def _number(self, value: Value) -> int:
        """A number that values computed alike share."""
        waiting = [value]
        while waiting:
            current = waiting[-1]
            node = current.node if current.buffer is None else None
            inputs = () if node is None else [one for part in (node, *node.path) for one in part.inputs]
            missing = [one for one in inputs if one not in self._known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            key: Any = current
            if node is not None:
                ids = tuple([part.callee.id for part in (node, *node.path)])
                key = (ids, current.index, *[self._known[one] for one in inputs])
            self._known[current] = self._numbers.setdefault(key, len(self._numbers))
        return self._known[value]


def _power(number: int) -> int:
    """The least power of two that is as large."""
    return 1 << (number - 1).bit_length()
