"""Ranges of open sizes: which sizes share an executable, and at which of them a program is recorded to
learn how it depends on its sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold.base.late import on_first_use

with on_first_use(__name__):
    import random


Range = tuple[int, int]
BETWEEN = 3  # sizes at which a program is made, besides its own and both ends of a range
SMALLEST = 16  # bound
BOTTOM = (2, SMALLEST)


class Mark(NamedTuple):
    """What the user says of a dimension."""

    open: bool
    min: int | None = None
    max: int | None = None


OPEN = Mark(True)


def bucket(size: int, mark: Mark = OPEN, smallest: int = SMALLEST) -> Range:
    """Which sizes share an executable with this one."""
    high = max(smallest, 1 << (size - 1).bit_length())
    low = 2 if high == smallest else high // 2 + 1
    if mark.max is not None:
        low, high = 2, mark.max
    if mark.min is not None:
        low = max(low, mark.min)
    return low, high


def integers_like(number: int, smallest: int = SMALLEST) -> Range:
    """Which integers share an executable with this one. They are below a power of two, as places are that
    have so many neighbours."""
    high = max(smallest, 1 << number.bit_length())
    return 2 if high == smallest else high // 2, high - 1


def halved(known: Range, size: int) -> Range:
    """The half of a range that has this size."""
    low, high = known
    middle = (low + high) // 2
    return (low, middle) if size <= middle else (middle + 1, high)


def possible(record: Callable[[Sequence[int]], Any], known: Sequence[Range], own: list[int]) -> list[Range]:
    """The ranges, narrowed to the sizes at which the function can be recorded at all: beyond a table of
    positions, say, it raises an error."""
    ranges = []
    for symbol, (low, high) in enumerate(known):

        def fails(size: int, symbol: int = symbol) -> bool:
            try:
                record([*own[:symbol], size, *own[symbol + 1 :]])
            except Exception:  # whatever the user's function raises there
                return True
            return False

        ranges.append((end_of(fails, own[symbol], low), end_of(fails, own[symbol], high)))
    return ranges


def end_of(fails: Callable[[int], bool], fine: int, end: int) -> int:
    """The size nearest to an end at which nothing fails, between it and one that is fine."""
    if fine == end or not fails(end):
        return end
    if fails(fine + (1 if end > fine else -1)):
        return fine
    while abs(end - fine) > 1:
        middle = (fine + end) // 2
        if fails(middle):
            end = middle
        else:
            fine = middle
    return fine


def chosen(ranges: Sequence[Range], own: Sequence[int], fixed: set[int]) -> list[list[int]]:
    """The sizes to record at, besides the call's own: both ends of each range, and others in between; in
    another order for each symbol, so that no two have the same sizes throughout."""
    columns = []
    for symbol, (low, high) in enumerate(ranges):
        chance = random.Random(symbol)
        between = [size for size in range(low + 1, min(high, low + 4096)) if size != own[symbol]]
        apart = [size for size in between if size not in fixed] or between or [low]
        picked = chance.sample(apart, min(BETWEEN, len(apart)))
        column = [low, high, *picked]
        while len(column) < 2 + BETWEEN:
            column.append(chance.choice((low, high)))
        turn = symbol % len(column)
        columns.append(column[turn:] + column[:turn])
    rows = [list(row) for row in zip(*columns)]
    return [row for i, row in enumerate(rows) if row not in rows[:i] and row != list(own)]
