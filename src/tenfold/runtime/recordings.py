"""Recordings of a call at several sizes, from which a program for open sizes is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tenfold.base.errors import TenfoldError, UnsupportedError, ValueNeeded
from tenfold.base.watched_sizes import Asked
from tenfold.runtime import evaluate
from tenfold.runtime.calls import record_call
from tenfold.runtime.plan import Cleared, Plan
from tenfold.runtime.ranges import Range
from tenfold.trace import tree
from tenfold.trace.counts import Count, Counts
from tenfold.trace.graph import Holder, Value


class OpenDims(NamedTuple):
    """Which dimensions of a call's tensors are open: for each a symbol, `dims[tensor, axis]`; and for each
    symbol the sizes that it may have."""

    dims: Mapping[tuple[int, int], int]
    ranges: tuple[Range, ...]

    def sizes(self, shapes: Sequence[Sequence[int]]) -> list[int]:
        """The size of each symbol in a call."""
        sizes = [0] * len(self.ranges)
        for (tensor, axis), symbol in self.dims.items():
            sizes[symbol] = shapes[tensor][axis]
        return sizes

    def shapes(self, shapes: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[list[int]]:
        """The shapes of a call's tensors at other sizes."""
        changed = [list(shape) for shape in shapes]
        for (tensor, axis), symbol in self.dims.items():
            changed[tensor][axis] = sizes[symbol]
        return changed

    def narrowed(self, own: Sequence[int], ranges: Sequence[Range]) -> OpenDims:
        """The same with other ranges; a symbol that can have no size but its own is not open."""
        if not ranges:
            return self
        kept = [i for i, (low, high) in enumerate(ranges) if low < high]
        if not kept:
            raise UnsupportedError(f"the function fails at sizes other than {', '.join(map(str, own))}")
        dims = {place: kept.index(symbol) for place, symbol in self.dims.items() if symbol in kept}
        return OpenDims(dims, tuple([ranges[i] for i in kept]))


class Recorder:
    """Records a call with its tensors in other shapes, once for each, and what it asks of sizes meanwhile."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple,
        kwargs: dict[str, Any],
        tensor: type,
        room: dict[int, int] | None = None,
    ):
        self.call = (function, args, kwargs, tensor)
        # By their places, how many elements there were of sizes that depend on data: a program that had less
        # room notes it here.
        self.room: dict[int, int] = {} if room is None else room
        self.given: list[Any] = []  # the tensors among the arguments
        tree.flatten((args, kwargs), lambda leaf: isinstance(leaf, tensor), self.given)
        self.plans: dict[Any, Plan] = {}
        self.asked: dict[Any, list[Asked]] = {}  # of sizes, by the function
        self.own: Plan | None = None  # of the call as it is, once that is recorded
        self.taken = Counts(0)  # the sizes that depend on data, of the last recording

    def at(self, shapes: Sequence[Sequence[int]], turn: int = 1, counts: Sequence[int] = ()) -> Plan:
        """The plan at these shapes. Sizes that depend on data are taken for other numbers at each `turn`, or
        for those of `counts`."""
        at = tuple([tuple(shape) for shape in shapes])
        key = (at, turn, *counts)
        if key not in self.plans:
            asked = self.asked[key] = []
            taken = self.taken = Counts(turn, self.room, dict(enumerate(counts)))
            arguments, recording, dependencies = record_call(*self.call, dict(enumerate(at)), asked, taken)
            self.plans[key] = Plan(arguments, recording, dependencies.found(arguments, recording))
        return self.plans[key]

    def asked_at(self, shapes: Sequence[Sequence[int]], turn: int = 1) -> list[Asked]:
        """What the function asked of sizes when it was recorded at these shapes."""
        return self.asked[tuple([tuple(shape) for shape in shapes]), turn]

    def plainly(self) -> Plan:
        """Record the call as it is, with plain sizes."""
        counts = self.taken = Counts(0, self.room)
        try:
            arguments, recording, dependencies = record_call(*self.call, counts=counts)
        except TenfoldError as error:
            if counts.found and not isinstance(error, ValueNeeded):
                raise UnknownSizes(counts.found) from error
            raise
        self.own = Plan(arguments, recording, dependencies.found(arguments, recording))
        return self.own

    def exactly(self) -> Plan:
        """Record the call with the sizes that its data give, each computed before what depends on it is
        recorded."""
        shapes = [tuple(argument.shape) for argument in self.given]
        known: list[int] = []
        while True:
            try:
                return self.at(shapes, counts=known)
            except TenfoldError as error:
                if len(self.taken.found) <= len(known) or isinstance(error, ValueNeeded):
                    raise
                known = self._computed(self.taken, len(known) + 1)

    def _computed(self, counts: Counts, some: int) -> list[int]:
        """The first sizes that depend on data, for the data of the call."""
        for stand_in, argument in counts.arguments:
            value = argument.current()
            evaluate.evaluate([value])
            stand_in.buffer = value.buffer
        return [int(evaluate.computed_array(count.value)) for count in counts.found[:some]]


class UnknownSizes(UnsupportedError):
    """A function that cannot be recorded unless sizes are known that depend on data."""

    def __init__(self, counts: Sequence[Count], reason: str = "", help: Any = None):
        first = counts[0]
        super().__init__(
            f"the size of {first.what} depends on data, and has to be known here"
            + (f": {reason}" if reason else ""),
            help=help or "use one mask for tensors that are to have equally many elements",
        )
        self.located("compile", first.source)


def require_alike(first: Plan, other: Plan) -> dict[int, Any]:
    """Refuse a function that reads or writes other tensors at other sizes. Of tensors that it makes itself
    and that are of open size, the number that each is full of."""
    filled: dict[int, Any] = {}
    for fact in ("structure", "argument_writes", "donated", "returned", "writes", "differentiable"):
        if not _same(getattr(first, fact), getattr(other, fact)):
            raise UnsupportedError("the function does other things to tensors outside at other sizes")
    if len(first.inputs) != len(other.inputs) or not _same(first.gradients.made, other.gradients.made):
        raise UnsupportedError("the function reads other tensors at other sizes")
    leaves = zip(first.trace.leaves, other.trace.leaves, strict=True)
    for i, (one, two, (leaf, other_leaf)) in enumerate(zip(first.inputs, other.inputs, leaves)):
        if one is two or (type(one) is int and one == two) or _equal(one, two, leaf, other_leaf):
            continue
        number = _number(one, two, leaf, other_leaf)
        if number is None:
            raise UnsupportedError(
                "the function makes a tensor of Python's numbers that is another one at other sizes",
                help="make it from shapes with arange, full and their like",
            ).located("tensor", leaf.made_at)
        filled[i] = number
    return filled


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)):
        return len(one) == len(two) and all(map(_same, one, two))
    if one is two:
        return True
    return type(one) is type(two) and not isinstance(one, Holder) and one == two


def _equal(one: Any, two: Any, leaf: Value, other: Value) -> bool:
    """Whether two tensors that the function makes itself hold the same."""
    if isinstance(one, Cleared) and isinstance(two, Cleared):
        return one.origin is two.origin
    if leaf.type is not other.type or isinstance(one, (int, Cleared)) or isinstance(two, (int, Cleared)):
        return False
    arrays = [evaluate.computed_array(value) for value in (leaf, other)]
    return arrays[0].tobytes() == arrays[1].tobytes()


def _number(one: Any, two: Any, leaf: Value, other: Value) -> Any:
    """The number that two tensors are full of; None if there is none."""
    if isinstance(one, (int, Cleared)) or isinstance(two, (int, Cleared)) or not leaf.type.numel:
        return None
    arrays = [evaluate.computed_array(value) for value in (leaf, other)]
    number = arrays[0].ravel()[0]
    # By their bytes: 0.0 equals -0.0 and is another number.
    full = all(array.tobytes() == number.tobytes() * array.size for array in arrays)
    return number if full and arrays[0].dtype == arrays[1].dtype else None


def require_plain(plan: Plan, steady: bool) -> None:
    """Refuse calls that are not just run, and functions that should not be called once more than needed."""
    if steady and not plan.found.steady:
        raise UnsupportedError(
            "the function changes Python state, and to open sizes it is called several times",
            help="compile it with dynamic=True if that does no harm",
        )
    if plan.device.mesh is not None:
        raise UnsupportedError("sizes of tensors that lie on several devices are not open")
    if plan.differentiable:
        raise UnsupportedError(
            "gradients of a compiled function's results are followed outside of it",
            help="call backward() inside the function",
        )
