"""Sizes of a compiled function that depend on data: how much room there is, and which numbers of elements the
open program was proved to serve.

Arrays have room for as many elements as there can be. Where only the data tell how many that is, as for
`repeat_interleave`, there is room for a guess, and the program is made anew where that was too little.

The program is opened from recordings with many elements. With few, the function may be another program: a
slice ends where the elements end, an op of one element broadcasts it. So when a number of elements first
comes, the function is recorded with that many, and must be the program that was opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from tenfold.base.errors import UnsupportedError
from tenfold.engines import xla
from tenfold.flat.open_layout import Sizes, plain
from tenfold.flat.opening import Counted
from tenfold.flat.sizes import Open
from tenfold.runtime import executables
from tenfold.runtime.decisions import Proof
from tenfold.runtime.plan import Plan
from tenfold.runtime.ranges import Range
from tenfold.runtime.recordings import OpenDims, Recorder, require_alike
from tenfold.trace.lower import OPEN

RECORDINGS = 7  # of a function that has such sizes, to tell them apart
FEW = 8  # up to so many elements, each number of them is proved by itself
SEVERAL = 3  # up to so many such sizes, numbers of elements are proved in ranges
ATTEMPTS = 8  # to prove a range of numbers that may fail
KEPT = 4096  # numbers of elements that are remembered


class Limit(NamedTuple):
    """How much room there is for a size."""

    symbol: Open
    what: str
    bound: int
    bounded: bool  # whether there cannot be more elements than there is room for

    @property
    def opened(self) -> Counted:
        return Counted(self.symbol, self.bound)

    @property
    def described(self) -> str:
        return f"{self.what}: as many elements as there are, up to {self.bound}"


def limits(plans: Sequence[Plan], ranges: Mapping[Open, Range]) -> list[Limit]:
    """The limits of the sizes that depend on data."""
    several = [plan.counts for plan in plans]
    if any([one.what for one in limits] != [one.what for one in several[0]] for limits in several):
        raise UnsupportedError("the function has other results whose size depends on data at other sizes")
    symbols = [Open([one.size for one in limits]) for limits in zip(*several)]
    if len({*symbols, *ranges}) < len(symbols) + len(ranges):
        raise UnsupportedError("two sizes cannot be told apart in so small a range")
    merged = []
    for symbol, counts in zip(symbols, zip(*several)):
        first, bounds = counts[0], [one.bound for one in counts]
        most = Sizes(dict(ranges), ()).most(plain(bounds)) if first.bounded else max(bounds)
        merged.append(Limit(symbol, first.what, max(most, 1), first.bounded))
    return merged


class Room(dict[int, int]):
    """How many elements there were, by their places, of sizes that only the data bound."""

    def __init__(self) -> None:
        super().__init__()
        self._proved: dict[int, int] = {}

    def keep(self) -> None:
        """A call with so much room succeeded."""
        self._proved = dict(self)

    def restore(self) -> None:
        """A call failed: what it asked for is not kept."""
        self.clear()
        self.update(self._proved)


class Proved:
    """The numbers of elements for which an open program is the function.

    They are proved one by one and, unless the function decides by them in Python, in ranges: from those that
    came up to those of the recordings, where the function is the same program at every corner of the range,
    the ends of open sizes of the arguments included."""

    def __init__(
        self, proof: Proof, plan: Plan, open: OpenDims, shapes: Sequence[Sequence[int]], one_by_one: bool
    ):
        self.proof, self.plan, self.open, self.shapes = proof, plan, open, shapes
        self.recorded = [(min(count.values), max(count.values)) for count in proof.counted]
        self.attempts = 0 if one_by_one or len(self.recorded) > SEVERAL else ATTEMPTS
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...]], bool] = {}
        self.ranges: list[list[Range]] = []

    def includes(self, sizes: Sequence[int], counts: Sequence[int]) -> bool | None:
        """Whether the program serves so many elements; None if that is not known."""
        known = self.known.get((tuple(sizes), tuple(counts)))
        if known is None and any(self._spans(known_range, counts) for known_range in self.ranges):
            return True
        return known

    def _spans(self, ranges: Sequence[Range], counts: Sequence[int]) -> bool:
        return all(count > FEW and low <= count <= high for count, (low, high) in zip(counts, ranges))

    def learn(self, recorder: Recorder, sizes: Sequence[int], counts: Sequence[int]) -> bool:
        """Find out whether it does."""
        if len(self.known) >= KEPT:
            self.known.clear()
        holds = self.known[tuple(sizes), tuple(counts)] = self._holds(recorder, sizes, counts)
        if holds and self.attempts and min(counts) > FEW:
            self._widen(recorder, sizes, counts)
        return holds

    def _widen(self, recorder: Recorder, sizes: Sequence[int], counts: Sequence[int]) -> None:
        """Prove as wide a range as can be from the recorded numbers to these: down to half of them, to the
        least that came, or to these themselves."""
        several = [self.recorded, *self.ranges, [(count, count) for count in counts]]
        met = [(min(lows), max(highs)) for lows, highs in (zip(*column) for column in zip(*several))]
        wide = [
            (max(FEW + 1, low // 2), max(high, most)) for (low, high), most in zip(met, self.proof.bounds)
        ]
        own = [(min(low, count), max(high, count)) for count, (low, high) in zip(counts, self.recorded)]
        ends = [[end[side] for end in self.open.ranges] for side in (0, 1)] if self.open.ranges else [sizes]
        for ranges in (wide, met, own):
            corners = [(at, corner) for at in ends for corner in product(*ranges)]
            if all(self._holds(recorder, *corner) for corner in corners):
                self.ranges.append(ranges)
                return
        self.attempts -= 1

    def _holds(self, recorder: Recorder, sizes: Sequence[int], counts: Sequence[int]) -> bool:
        """Whether the function, recorded with so many elements, is the program that was opened."""
        try:
            plan = recorder.at(self.open.shapes(self.shapes, sizes), counts=counts)
            if [count.what for count in plan.counts] != [count.what for count in self.plan.counts]:
                return False
            require_alike(self.plan, plan)
            function = executables.lowered(plan.trace, plan.device, OPEN)
        except Exception:  # whatever the user's function raises there
            return False
        return self.proof.holds([*sizes, *counts], function)


def counted(places: Sequence[int], computed: Sequence[Any]) -> tuple[int, ...]:
    """The sizes that depend on data, of one run, by the places of the results that tell them."""
    return tuple([int(xla.fetch(computed[place])) for place in places])
