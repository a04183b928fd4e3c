"""Sizes of a compiled function that depend on data: from where to where each may go.

Arrays have room for as many elements as there can be. Where only the data tell how many that is, as for
`repeat_interleave`, there is room for a guess, and the program is made anew where that was too little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tenfold.base.errors import ShapeError, TenfoldError, UnsupportedError
from tenfold.flat.open_layout import Sizes, plain
from tenfold.flat.opening import Counted
from tenfold.flat.sizes import Formulas, Open
from tenfold.runtime.plan import Plan
from tenfold.runtime.recordings import Range, Recorder, end_of

RECORDINGS = 7  # of a function that has such sizes, to tell them apart


class Limit(NamedTuple):
    """From where to where a size may go, and what is wrong where it goes further."""

    symbol: Open
    what: str
    low: int
    high: int
    bound: int
    bounded: bool  # whether there cannot be more elements than there is room for
    error: type[Exception]
    message: str
    source: Any

    @property
    def opened(self) -> Counted:
        high = self.high if self.bounded else self.bound
        return Counted(self.symbol, self.low, high, self.bound, self.error, self.message, self.source)

    @property
    def described(self) -> str:
        return f"{self.what}: as many elements as there are, up to {self.high}"


def limits(
    recorder: Recorder, shapes: Sequence[Sequence[int]], plans: Sequence[Plan], ranges: Mapping[Open, Range]
) -> list[Limit]:
    """The limits of the sizes that depend on data."""
    several = [each.counts for each in plans]
    if any([one.what for one in each] != [one.what for one in several[0]] for each in several):
        raise UnsupportedError("the function has other results whose size depends on data at other sizes")
    found: list[Limit] = []
    symbols = [Open([one.size for one in each]) for each in zip(*several)]
    if len({*symbols, *ranges}) < len(symbols) + len(ranges):
        raise UnsupportedError("two sizes cannot be told apart in so small a range")
    for place, counts in enumerate(zip(*several)):
        first = counts[0]
        bounds = [one.bound for one in counts]
        most = Sizes(dict(ranges), ()).most(plain(bounds)) if first.bounded else max(bounds)
        probe = _Probe(recorder, shapes, plans, [*ranges, *symbols], place)
        low, high = probe.ends(max(most, 1))
        if not first.bounded and high < most:
            raise UnsupportedError(f"the function fails if there are more than {high} elements")
        found.append(
            Limit(
                symbols[place],
                first.what,
                low,
                high,
                max(most, 1),
                first.bounded,
                *probe.failure(),
                first.source,
            )
        )
    return found


def require_none(plan: Plan) -> None:
    """Refuse what is decided in Python by a size that only the data tell."""
    if plan.counts:
        raise UnsupportedError(
            f"the function decides in Python by a size that depends on data, or takes it for a number: "
            f"that of {plan.counts[0].what}",
            help="use tn.where or tn.cond, or move this out of the compiled function",
        ).located(plan.counts[0].what, plan.counts[0].source)


class _Probe:
    """Records the function with one of these sizes taken for chosen numbers."""

    def __init__(
        self,
        recorder: Recorder,
        shapes: Sequence[Sequence[int]],
        plans: Sequence[Plan],
        symbols: Sequence[Open],
        place: int,
    ):
        self.recorder, self.shapes, self.plans, self.symbols = recorder, shapes, plans, symbols
        self.place = place
        self.error: Exception | None = None
        self.own = plans[1].counts[place].size

    def ends(self, most: int) -> Range:
        """The least and the most elements with which the function can be recorded, and is one program."""
        high = end_of(self.fails, min(self.own, most), most)
        self.error = None
        low = end_of(self.fails, min(self.own, most), 0)
        for size in (1, 0):
            if low <= size and not self.is_alike(size):
                return max(size + 1, low), high
        return low, high

    def fails(self, size: int) -> bool:
        try:
            self.recorder.at(self.shapes, place=self.place, size=size)
        except Exception as error:  # whatever the user's function raises there
            self.error = error
            return True
        return False

    def failure(self) -> tuple[type[Exception], str]:
        """The error and its message where there are too few elements, or too many."""
        what = self.plans[0].counts[self.place].what
        if isinstance(self.error, TenfoldError):
            return type(self.error), self.error.message
        if self.error is not None:
            return ShapeError, f"the function fails for so many elements of {what}: {self.error}"
        return ShapeError, f"the function is another program for so few elements of {what}"

    def is_alike(self, size: int) -> bool:
        """Whether the function does the same with so many elements: not so if an op broadcasts them, or takes
        dimensions of one element away."""
        plan = self.recorder.at(self.shapes, place=self.place, size=size)
        traces = [each.trace.nodes for each in self.plans]
        if len(plan.trace.nodes) != len(traces[0]):
            return False
        formulas = Formulas(self.symbols)
        sizes = [each.values[1] for each in self.symbols[: len(self.symbols) - len(plan.counts)]]
        at = dict(zip(self.symbols, [*sizes, *[each.size for each in plan.counts]]))
        for node, *several in zip(plan.trace.nodes, *traces):
            if node.callee.qualified != several[0].callee.qualified:
                return False
            types = zip(node.callee.result_types, *[each.callee.result_types for each in several])
            for type, *others in types:
                if type.rank != others[0].rank:
                    return False
                for extent, *rest in zip(type.shape, *[each.shape for each in others]):
                    expected: Any = plain(rest)
                    if isinstance(expected, Open):
                        formula = formulas.find(expected)
                        expected = None if formula is None else formula.at(at)
                    if extent != expected:
                        return False
        return True
