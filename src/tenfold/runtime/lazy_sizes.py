"""Open sizes of lazy programs. A loop that records the same program with other sizes each time finds one
executable for all of them.

Nothing is recorded twice for it, as it is for a compiled function: the programs that came are compared
number by number (`trace/skeleton.py`). A number that was always the same is fixed; a size of a leaf that
changed is a symbol; any other number has to follow from symbols, or is one itself. Then the program can be
made at any size, and is opened as a compiled function is. A program is served only if all its numbers are
what the open one has at its sizes, so a wrong guess is compiled in vain but never run.
"""

from __future__ import annotations

import functools
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.bounded import Bounded
from tenfold.base.devices import Device
from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.base.forking import forkable
from tenfold.base.garbage import uncollected
from tenfold.base.late import on_first_use
from tenfold.engines import xla
from tenfold.flat.sizes import Formula, Open
from tenfold.runtime import executables
from tenfold.runtime.background import background
from tenfold.runtime.checks import Donations
from tenfold.runtime.ranges import BOTTOM, Range, bucket, chosen, possible
from tenfold.trace.collect import Trace
from tenfold.trace.graph import Value
from tenfold.trace.lower import OPEN, lower
from tenfold.trace.skeleton import Template, skeleton_of

with on_first_use(__name__):
    from tenfold.flat.merging import merged_functions
    from tenfold.flat.open_layout import Sizes
    from tenfold.flat.opening import opened


OBSERVED = 3  # programs with different numbers, before one is opened
KEPT = 256  # families
MAX_REFUSALS = 3
MAX_PROGRAMS = 32  # of a family


class Follows(NamedTuple):
    """A number that follows from symbols: `factor` times their sum or product, plus `offset`."""

    symbols: tuple[int, ...]
    product: bool = False
    factor: int = 1
    offset: int = 0

    def at(self, sizes: Sequence[int]) -> int:
        parts = [sizes[symbol] for symbol in self.symbols]
        return self.factor * (math.prod(parts) if self.product else sum(parts)) + self.offset


class Pattern:
    """The numbers of a family of programs: each fixed, or following from symbols."""

    def __init__(self, observed: Sequence[Sequence[int]], extents: int):
        """Compare the numbers of several programs, of which the first are the extents of their leaves."""
        self.numbers: list[int | Follows] = []
        self.symbols: list[int] = []  # the number that tells the size of each
        columns: list[tuple[int, ...]] = []
        for place, column in enumerate(zip(*observed)):
            if len(set(column)) == 1:
                self.numbers.append(column[0])
                continue
            follows = _follows(column, columns, place < extents)
            if follows is None:
                if min(column) < 2:
                    raise UnsupportedError(
                        f"a number was {column[0]}, then {column[1]}, and no size tells it"
                    )
                follows = Follows((len(columns),))
                columns.append(column)
                self.symbols.append(place)
            self.numbers.append(follows)

    def sizes(self, numbers: Sequence[int]) -> list[int] | None:
        """The symbols' sizes in a program with these numbers; None if it is not one of this pattern."""
        sizes = [numbers[symbol] for symbol in self.symbols]
        for own, number in zip(self.numbers, numbers, strict=True):
            if number != (own if type(own) is int else own.at(sizes)):  # type: ignore[union-attr]
                return None
        return sizes

    def at(self, sizes: Sequence[int]) -> list[int]:
        return [number if isinstance(number, int) else number.at(sizes) for number in self.numbers]


def _follows(column: Sequence[int], columns: Sequence[Sequence[int]], extent: bool) -> Follows | None:
    """How a number follows from symbols, if it does. The extent of a leaf may only be longer or shorter."""
    for i, known in enumerate(columns):
        if len({a - b for a, b in zip(column, known)}) == 1:
            return Follows((i,), offset=column[0] - known[0])
    if extent:
        return None
    for i, known in enumerate(columns):
        if len({a + b for a, b in zip(column, known)}) == 1:
            return Follows((i,), factor=-1, offset=column[0] + known[0])
        if (
            all(a % b == 0 for a, b in zip(column, known))
            and len({a // b for a, b in zip(column, known)}) == 1
        ):
            return Follows((i,), factor=column[0] // known[0])
    for i, one in enumerate(columns):
        for k in range(i, len(columns)):
            products = [a * b for a, b in zip(one, columns[k])]
            factors = {divmod(a, b) for a, b in zip(column, products)}
            if len(factors) == 1 and not min(factors)[1]:
                return Follows((i, k), product=True, factor=min(factors)[0])
            if k > i and len({a - b - c for a, b, c in zip(column, one, columns[k])}) == 1:
                return Follows((i, k), offset=column[0] - one[0] - columns[k][0])
    return None


class OpenTrace:
    """A lazy program at the bounds of its open sizes, ready to run."""

    def __init__(
        self,
        template: Template,
        pattern: Pattern,
        own: list[int],
        ranges: Sequence[Range],
        donated: Donations,
    ):
        at = lambda sizes: template.at(pattern.at(sizes))
        self.pattern = pattern
        self.ranges = possible(at, ranges, own)
        fixed = {number for number in pattern.numbers if isinstance(number, int)}
        recordings = [own, *chosen(self.ranges, own, fixed)]
        with uncollected():
            functions = [lower(at(recording), kind=OPEN) for recording in recordings]
            merged = merged_functions(functions, lambda k: f"sizes {', '.join(map(str, recordings[k]))}")
            symbols = {Open(observed): ends for observed, ends in zip(zip(*recordings), self.ranges)}
            if len(symbols) < len(own):
                raise UnsupportedError("two sizes cannot be told apart in so small a range")
            program = opened(merged, dict(symbols))
        self.function = program.function
        self.symbols = list(symbols)
        sizes = Sizes(dict(symbols), self.function.params[len(self.function.params) - len(own) :])
        # For each result of open size, its extents.
        self.extents: dict[int, list[int | Formula]] = {
            i: [sizes.formula(extent) if isinstance(extent, Open) else extent for extent in shape]
            for i, shape in enumerate(program.shapes)
            if any(isinstance(extent, Open) for extent in shape)
        }
        open_leaves = {
            i
            for i, value in enumerate(merged.params)
            if any(isinstance(extent, Open) for extent in value.type.shape)
        }
        self.donated = tuple(
            [pair for pair in donated if pair[0] not in open_leaves and pair[1] not in self.extents]
        )
        self.loaded = executables.build_function(self.function, template.device, self.donated, None)
        self.given = Bounded(64)  # sizes, as buffers on the device

    def serves(self, numbers: Sequence[int]) -> list[int] | None:
        """The sizes of a program with these numbers, if this one computes the same."""
        sizes = self.pattern.sizes(numbers)
        if sizes is None or not all(low <= size <= high for size, (low, high) in zip(sizes, self.ranges)):
            return None
        return sizes

    def padding(self, leaves: Sequence[Value]) -> dict[int, tuple[int, ...]]:
        """The leaves that are to be padded, and to which shapes."""
        return {
            i: param.type.shape
            for i, (leaf, param) in enumerate(zip(leaves, self.function.params))
            if leaf.type is not param.type
        }

    def scalars(self, sizes: Sequence[int], device: Device) -> list[Any]:
        put = lambda size: xla.put(np.asarray(size, np.int32), device)
        return [self.given.get(size, functools.partial(put, size)) for size in sizes]

    def cut(self, results: list[Any], sizes: Sequence[int]) -> list[Any]:
        """The results at their true sizes."""
        at = dict(zip(self.symbols, sizes))
        for i, extents in self.extents.items():
            shape = tuple([extent if isinstance(extent, int) else extent.at(at) for extent in extents])
            array = xla.fetch(results[i])
            if array.shape != shape:
                results[i] = np.ascontiguousarray(array[tuple([slice(0, extent) for extent in shape])])
        return results


class Found(NamedTuple):
    """An open program for a lazy one, and the sizes of that."""

    program: OpenTrace
    sizes: list[int]


class Family:
    """Programs that differ in whole numbers alone."""

    def __init__(self) -> None:
        self.observed: list[tuple[int, ...]] = []
        self.programs: list[OpenTrace] = []
        self.refused: dict[Any, str] = {}

    def observe(self, numbers: Sequence[int]) -> None:
        latest = tuple(numbers)
        self.observed = [*[sizes for sizes in self.observed if sizes != latest], latest][-OBSERVED:]

    def find(self, numbers: Sequence[int]) -> tuple[OpenTrace, list[int]] | None:
        for program in self.programs:
            sizes = program.serves(numbers)
            if sizes is not None:
                return program, sizes
        return None

    def open(
        self, template: Template, observed: Sequence[Sequence[int]], extents: int, donated: Donations
    ) -> None:
        """Make a program for the sizes that came last and their like. What it raises says why not."""
        pattern = Pattern(observed, extents)
        own = pattern.sizes(observed[-1])
        assert own is not None
        reason: UnsupportedError | None = None
        earlier = [pattern.sizes(values) for values in observed]
        grows = [all(a[i] < b[i] for a, b in pairwise(earlier)) for i in range(len(own))]  # type: ignore[index]
        for ranges in _attempts(own, grows):
            try:
                program = OpenTrace(template, pattern, own, ranges, donated)
            except UnsupportedError as error:
                reason = reason or error
                continue
            except (TypeError, LookupError, AttributeError) as error:
                # A number that is no size, such as a dimension or how many parts there are, changed as well.
                reason = reason or UnsupportedError(f"a number that changes cannot be open: {error}")
                continue
            self.programs = [program, *self.programs][:MAX_PROGRAMS]
            return
        assert reason is not None
        raise reason


def _attempts(own: Sequence[int], grows: Sequence[bool]) -> Iterator[list[Range]]:
    """The ranges to try. A size that grows will soon have left its own, so that it gets the next as well."""
    ranges = [bucket(size) for size in own]
    if any(grows):
        yield [
            (low, bucket(2 * size)[1]) if growing else (low, high)
            for size, growing, (low, high) in zip(own, grows, ranges)
        ]
    yield ranges
    if BOTTOM in ranges:  # some ops are others for each power of two
        yield [bucket(size, smallest=2) for size in own]


_lock = forkable(threading.Lock())
_families: OrderedDict[Any, Family] = OrderedDict()


class Lookup:
    """A lazy program, and those that differ from it in sizes."""

    def __init__(self, trace: Trace, device: Device, donated: Donations):
        skeleton, self.numbers = skeleton_of(trace)
        self.trace, self.device, self.donated = trace, device, donated
        self.key = (device, skeleton, donated)
        with _lock:
            self.family = _families.setdefault(self.key, Family())
            _families.move_to_end(self.key)
            while len(_families) > KEPT:
                _families.popitem(last=False)

    def found(self) -> Found | None:
        """The open program that serves this one, if there is one already."""
        served = self.family.find(self.numbers)
        if served is None:
            self.family.observe(self.numbers)
            return None
        return Found(*served)

    @property
    def opens(self) -> bool:
        """Whether enough is known to open sizes, and nothing speaks against it so far."""
        family = self.family
        return len(family.observed) >= OBSERVED and len(family.refused) < MAX_REFUSALS

    def build(self, wait: bool) -> str:
        """Open the sizes: now, or in another thread. Why that failed, if it did, or did before."""
        extents = sum([leaf.type.rank for leaf in self.trace.leaves])
        job_key = ("sizes", *self.key, tuple([bucket(number) for number in self.numbers[:extents]]))
        family, donated = self.family, self.donated
        if job_key in family.refused:
            return family.refused[job_key]
        if job_key in background:
            return ""
        template, observed = Template(self.trace), tuple(family.observed)

        def job() -> None:
            if family.find(observed[-1]) is not None:
                return  # it was made while this job waited
            try:
                family.open(template, observed, extents, donated)
            except TenfoldError as error:
                family.refused[job_key] = error.message

        if wait:
            job()
        else:
            background.submit(job_key, job)
        return family.refused.get(job_key, "")
