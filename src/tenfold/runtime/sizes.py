"""Which sizes of a compiled function are open, and which executable serves a call: the policy.

The second size of a signature opens the dimension that changed; `dynamic=True` opens all at once, and
`mark_dynamic` one of them. A size of up to 16 is served by an executable for 2 to 16, a larger one by one for
all sizes up to the next power of two, from half of it on: so sizes up to n need log2(n) executables, and less
than half of what is computed is padding. Sizes 0 and 1 stay closed: ops broadcast them.

Integers (`integers.py`) are served in the same way, up to one below a power of two: often they are places in
a table. Where the table ends earlier, their range is halved until it ends in the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.base.warning import warn
from tenfold.engines import xla
from tenfold.runtime.guards import Owners
from tenfold.runtime.integers import name_of
from tenfold.runtime.opened import OpenSpecialization, open_specialization, why
from tenfold.runtime.ranges import BOTTOM, OPEN, Mark, Range, bucket, halved, integers_like
from tenfold.runtime.recordings import OpenDims, Recorder

MAX_REFUSALS = 3  # of one signature, after which its sizes stay closed
MAX_VARIANTS = 8
HALVINGS = 4  # of the range of an integer, before it is closed


class Family:
    """The calls of a function that differ in sizes alone."""

    def __init__(self, shapes: Sequence[Sequence[int]], integers: Sequence[bool]):
        """`integers` says which tensors are stand-ins for integers."""
        self.integers = integers
        self.first = [tuple(shape) for shape in shapes]
        self.open: set[tuple[int, int]] = set()
        self.programs: dict[Any, list[OpenSpecialization]] = {}
        self.refused: dict[Any, str] = {}

    def notice(self, shapes: Sequence[Sequence[int]], marks: Sequence[dict[int, Mark]], every: bool) -> None:
        """Open the dimensions whose sizes are not those of the first call, and those that are marked."""
        for tensor, shape in enumerate(shapes):
            for axis, size in enumerate(shape):
                mark = marks[tensor].get(axis)
                if mark is not None and not mark.open:
                    self.open.discard((tensor, axis))
                elif every or mark is not None or size != self.first[tensor][axis]:
                    self.open.add((tensor, axis))

    def dims(self, shapes: Sequence[Sequence[int]], marks: Sequence[dict[int, Mark]]) -> OpenDims | None:
        """The open dimensions of a call. Those that have one size, and had one at the first call, are one."""
        symbols: dict[Any, int] = {}
        dims: dict[tuple[int, int], int] = {}
        ranges: dict[int, Range] = {}
        for tensor, axis in sorted(self.open):
            size = shapes[tensor][axis]
            if size < 2:
                continue
            mark = marks[tensor].get(axis) or OPEN
            key = (size, self.first[tensor][axis], mark.min, mark.max)
            symbol = dims[tensor, axis] = symbols.setdefault(key, len(symbols))
            if not self.integers[tensor]:
                ranges[symbol] = bucket(size, mark)
            else:
                ranges.setdefault(symbol, integers_like(size))
        return OpenDims(dims, tuple(ranges.values())) if dims else None


class OpenPrograms:
    """The open programs of a function."""

    def __init__(self, every: bool):
        self.every = every  # whether all sizes are open from the first call on
        self.families: dict[Any, Family] = {}
        self.said: set[str] = set()

    def find(
        self, key: Any, arguments: Sequence[Any], first: Sequence[tuple[int, ...]] | None = None
    ) -> OpenCall | None:
        """What serves a call whose arguments are like these but for sizes; None if none of them is open.
        `first` has the shapes of an earlier call, where that had another key."""
        shapes = [tuple(argument.shape) for argument in arguments]
        marks = [argument._open_dims for argument in arguments]
        family = self.families.get(key)
        new = family is None
        if family is None:
            integers = [name_of(argument._value) is not None for argument in arguments]
            family = self.families[key] = Family(first or shapes, integers)
            new = first is None
        # Where bits must be the same whenever it runs, sizes do not open because others came before.
        if (new or xla.is_deterministic()) and not self.every and not any(marks):
            return None
        if len(family.refused) >= MAX_REFUSALS:
            return None
        family.notice(shapes, marks, self.every)
        open = family.dims(shapes, marks)
        return None if open is None else OpenCall(self, family, open, shapes, self.every or any(marks))

    def say(self, reason: str) -> None:
        """Tell the user, once, why sizes stay closed that were to be open."""
        if reason not in self.said:
            self.said.add(reason)
            warn(f"compile: sizes stay closed, and each is compiled apart: {reason}")

    def specializations(self) -> list[OpenSpecialization]:
        return [
            open_program
            for family in self.families.values()
            for several in family.programs.values()
            for open_program in several
        ]

    def described(self, owners: Owners) -> list[tuple[str, list[str]]]:
        """What is open, and what is not and why."""
        lines = []
        for family in self.families.values():
            for several in family.programs.values():
                lines += [("for open sizes", specialization.described(owners)) for specialization in several]
            reasons = dict.fromkeys(family.refused.values())
            lines += [("sizes stay closed because", [reason]) for reason in reasons]
        return lines


class OpenCall:
    """A call some of whose sizes are open, and the programs that may serve it."""

    def __init__(
        self, owner: OpenPrograms, family: Family, open: OpenDims, shapes: list[Any], explicit: bool
    ):
        self.owner, self.family, self.open, self.shapes, self.explicit = owner, family, open, shapes, explicit
        closed = [
            tuple([-1 if (i, axis) in open.dims else size for axis, size in enumerate(shape)])
            for i, shape in enumerate(shapes)
        ]
        self.key = (tuple(closed), tuple(open.dims.items()), open.ranges)

    @property
    def programs(self) -> list[OpenSpecialization]:
        return self.family.programs.get(self.key, [])

    @property
    def of_integers(self) -> bool:
        """Whether nothing but integers is open."""
        return all(self.family.integers[tensor] for tensor, _ in self.open.dims)

    @property
    def refused(self) -> bool:
        return (self.key, self.finer) in self.family.refused

    @property
    def finer(self) -> tuple[Range, ...]:
        """The ranges by powers of two all the way down: some ops are others for each of them."""
        sizes = self.open.sizes(self.shapes)
        finest = {
            BOTTOM: lambda size: bucket(size, smallest=2),
            integers_like(2): lambda n: integers_like(n, 2),
        }
        return tuple(
            [
                finest[known](size) if known in finest else known
                for size, known in zip(sizes, self.open.ranges)
            ]
        )

    def record(self, recorder: Recorder) -> OpenSpecialization | None:
        """A new open program for the call; None if it cannot be open."""
        reason = ""
        for open in self._attempts():
            try:
                specialization = open_specialization(recorder, open, self.shapes, not self.explicit)
            except UnsupportedError as error:
                reason = reason or why(error)
                continue
            except TenfoldError:
                raise
            except Exception as error:  # of the user's code
                if recorder.own is None:
                    raise
                self.family.refused[self.key, self.finer] = f"the function raises {type(error).__name__}"
                return None
            several = self.family.programs.setdefault(self.key, [])
            several.insert(0, specialization)
            del several[MAX_VARIANTS:]
            return specialization
        self.family.refused[self.key, self.finer] = reason
        if self.explicit:
            self.owner.say(reason)
        return None

    def _attempts(self) -> Iterator[OpenDims]:
        """What may be open, the most first: all, all in smaller ranges, and of those that were not asked for
        one by one each alone."""
        yield self.open
        if self.finer != self.open.ranges:
            yield OpenDims(self.open.dims, self.finer)
        sizes, ranges = self.open.sizes(self.shapes), self.finer
        for _ in range(HALVINGS if self.of_integers else 0):
            ranges = tuple([halved(known, size) for known, size in zip(ranges, sizes, strict=True)])
            if any(low == high for low, high in ranges):
                break
            yield OpenDims(self.open.dims, ranges)
        for symbol in range(len(self.finer)) if self.owner.every and len(self.finer) > 1 else ():
            dims = {place: 0 for place, dim in self.open.dims.items() if dim == symbol}
            yield OpenDims(dims, (self.finer[symbol],))
