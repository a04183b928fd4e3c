"""A compiled function whose sizes are open, ready to run: one executable for all sizes in a range. Its inputs
are padded to the bounds and its results cut to their true sizes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.base.garbage import uncollected
from tenfold.base.watched import Asked
from tenfold.engines import xla
from tenfold.flat.ir import TensorType
from tenfold.flat.merging import merged_functions
from tenfold.flat.open_layout import Sizes
from tenfold.flat.opening import Opened, opened
from tenfold.flat.sizes import Formula, Open, OpenText
from tenfold.runtime import evaluate, executables
from tenfold.runtime.calls import record_call
from tenfold.runtime.checks import Loaded
from tenfold.runtime.decisions import Proof, holds_throughout
from tenfold.runtime.plan import Cleared, Plan
from tenfold.runtime.specialization import Specialization
from tenfold.trace.graph import Value

Range = tuple[int, int]
OPEN = "open"  # what lowerings are told in the place of a type of device
BETWEEN = 3  # sizes at which a function is recorded, besides the call's own and both ends of a range


class OpenDims(NamedTuple):
    """Which dimensions of a call's tensors are open: for each a symbol, `dims[tensor, axis]`; and for each
    symbol the sizes that it may have."""

    dims: Mapping[tuple[int, int], int]
    ranges: tuple[Range, ...]

    def sizes(self, shapes: Sequence[Sequence[int]]) -> list[int]:
        """The size of each symbol in a call."""
        found = [0] * len(self.ranges)
        for (tensor, axis), symbol in self.dims.items():
            found[symbol] = shapes[tensor][axis]
        return found

    def shapes(self, shapes: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[list[int]]:
        """The shapes of a call's tensors at other sizes."""
        changed = [list(each) for each in shapes]
        for (tensor, axis), symbol in self.dims.items():
            changed[tensor][axis] = sizes[symbol]
        return changed

    def narrowed(self, own: Sequence[int], ranges: Sequence[Range]) -> OpenDims:
        """The same with other ranges; a symbol that can have no size but its own is not open."""
        kept = [i for i, (low, high) in enumerate(ranges) if low < high]
        if not kept:
            raise UnsupportedError(f"the function fails at sizes other than {', '.join(map(str, own))}")
        dims = {place: kept.index(symbol) for place, symbol in self.dims.items() if symbol in kept}
        return OpenDims(dims, tuple([ranges[i] for i in kept]))


class Recorder:
    """Records a call with its tensors in other shapes, once for each, and what it asks of sizes meanwhile."""

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], tensor: type):
        self.call = (function, args, kwargs, tensor)
        self.plans: dict[Any, Plan] = {}
        self.asked: dict[Any, list[Asked]] = {}  # of sizes, by the function
        self.own: Plan | None = None  # of the call as it is, once that is recorded

    def at(self, shapes: Sequence[Sequence[int]]) -> Plan:
        key = tuple([tuple(each) for each in shapes])
        if key not in self.plans:
            asked = self.asked[key] = []
            given, recording, dependencies = record_call(*self.call, dict(enumerate(key)), asked)
            self.plans[key] = Plan(given, recording, dependencies.found(given, recording))
        return self.plans[key]

    def asked_at(self, shapes: Sequence[Sequence[int]]) -> list[Asked]:
        """What the function asked of sizes when it was recorded at these shapes."""
        return self.asked[tuple([tuple(each) for each in shapes])]

    def plainly(self) -> Plan:
        """Record the call as it is, with plain sizes."""
        given, recording, dependencies = record_call(*self.call)
        self.own = Plan(given, recording, dependencies.found(given, recording))
        return self.own


def open_specialization(
    recorder: Recorder, open: OpenDims, shapes: Sequence[Sequence[int]], steady: bool
) -> OpenSpecialization:
    """Record a call at several sizes and open what differs. UnsupportedError says why that cannot be; with
    `steady`, also since the function changes Python state whenever it is recorded."""
    first = recorder.own or recorder.plainly()
    _require_plain(first, steady)

    def at(sizes: Sequence[int]) -> Plan:
        return recorder.at(open.shapes(shapes, sizes))

    own = open.sizes(shapes)
    open = open.narrowed(own, _possible(at, open.ranges, own))
    own = open.sizes(shapes)
    sizes = [own, own, *_chosen(open.ranges, own, {each for shape in shapes for each in shape})]
    plans = [first]
    for each in sizes[1:]:
        try:
            plans.append(at(each))
        except TenfoldError as error:
            told = ", ".join(map(str, each))
            raise UnsupportedError(f"at sizes {told} the function fails: {error.message}").located(
                error.op, error.source
            ) from None
    filled: dict[int, Any] = {}
    for other in plans[1:]:
        filled.update(require_alike(first, other))
    symbols = [Open([each[i] for each in sizes]) for i in range(len(own))]
    if len(set(symbols)) < len(symbols):
        raise UnsupportedError("two sizes cannot be told apart in so small a range")
    functions = [executables.lowered(each.trace, each.device, OPEN) for each in plans]
    ranges = dict(zip(symbols, open.ranges))
    with uncollected():
        merged = merged_functions(functions, lambda k: f"sizes {', '.join(map(str, sizes[k]))}")
        made = opened(merged, ranges)
    _require_closed_state(first, made)
    if not first.found.steady:
        recorder.plainly()  # what the function left behind is to come from the call as it is
    asked = [recorder.asked_at(open.shapes(shapes, each)) for each in sizes]
    proof = None if holds_throughout(asked, ranges) else Proof(functions, ranges, made)
    given = Sizes(ranges, made.function.params[-len(own) :])
    return OpenSpecialization(first, open, shapes, made, given, filled, proof)


def _possible(record: Callable[[Sequence[int]], Any], given: Sequence[Range], own: list[int]) -> list[Range]:
    """The ranges, narrowed to the sizes at which the function can be recorded at all: beyond a table of
    positions, say, it raises an error."""
    ranges = []
    for symbol, (low, high) in enumerate(given):

        def fails(size: int, symbol: int = symbol) -> bool:
            try:
                record([*own[:symbol], size, *own[symbol + 1 :]])
            except Exception:  # whatever the user's function raises there
                return True
            return False

        ranges.append((_end(fails, own[symbol], low), _end(fails, own[symbol], high)))
    return ranges


def _end(fails: Callable[[int], bool], fine: int, end: int) -> int:
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


def _chosen(ranges: Sequence[Range], own: Sequence[int], fixed: set[int]) -> list[list[int]]:
    """The sizes to record at, besides the call's own: both ends of each range, and others in between; in
    another order for each symbol, so that no two have the same sizes throughout."""
    columns = []
    for symbol, (low, high) in enumerate(ranges):
        chance = random.Random(symbol)
        between = [each for each in range(low + 1, min(high, low + 4096)) if each != own[symbol]]
        apart = [each for each in between if each not in fixed] or between or [low]
        picked = chance.sample(apart, min(BETWEEN, len(apart)))
        column = [low, high, *picked]
        while len(column) < 2 + BETWEEN:
            column.append(chance.choice((low, high)))
        turn = symbol % len(column)
        columns.append(column[turn:] + column[:turn])
    rows = [list(each) for each in zip(*columns)]
    return [each for i, each in enumerate(rows) if each not in rows[:i] and each != list(own)]


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
    return one is two or (type(one) is type(two) and one == two)


def _equal(one: Any, two: Any, leaf: Value, other: Value) -> bool:
    """Whether two tensors that the function makes itself hold the same."""
    if isinstance(one, Cleared) and isinstance(two, Cleared):
        return one.origin is two.origin
    if leaf.type is not other.type or isinstance(one, (int, Cleared)) or isinstance(two, (int, Cleared)):
        return False
    arrays = [evaluate.computed_array(each) for each in (leaf, other)]
    return arrays[0].tobytes() == arrays[1].tobytes()


def _number(one: Any, two: Any, leaf: Value, other: Value) -> Any:
    """The number that two tensors are full of; None if there is none."""
    if isinstance(one, (int, Cleared)) or isinstance(two, (int, Cleared)) or not leaf.type.numel:
        return None
    arrays = [evaluate.computed_array(each) for each in (leaf, other)]
    number = arrays[0].ravel()[0]
    # By their bytes: 0.0 equals -0.0 and is another number.
    full = all(each.tobytes() == number.tobytes() * each.size for each in arrays)
    return number if full and arrays[0].dtype == arrays[1].dtype else None


def _require_plain(plan: Plan, steady: bool) -> None:
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


def _require_closed_state(plan: Plan, made: Opened) -> None:
    """Refuse results of open size that replace what stays as it is: state, and gradients."""
    for i, (kind, _) in enumerate(plan.targets):
        if kind in ("written", "gradient") and any(isinstance(each, Open) for each in made.shapes[i]):
            raise UnsupportedError("a tensor outside of the function gets another size at each call")


class OpenSpecialization(Specialization):
    """A function on arguments whose sizes are open."""

    def __init__(
        self,
        plan: Plan,
        open: OpenDims,
        shapes: Sequence[Sequence[int]],
        made: Opened,
        sizes: Sizes,
        filled: Mapping[int, Any],
        proof: Proof | None,
    ):
        super().__init__(plan)
        self.proof = proof
        self.plain = False
        self.open = open
        self.shapes = [tuple(each) for each in shapes]
        self.made = made
        self.padded = {tensor for tensor, _ in open.dims}
        self.symbols = list(sizes.ranges)
        self.formulas = sizes
        # For each result of open size, its extents: numbers, or formulas over the symbols.
        self.extents: dict[int, list[int | Formula]] = {
            i: [sizes.formula(each) if isinstance(each, Open) else each for each in shape]
            for i, shape in enumerate(made.shapes)
            if any(isinstance(each, Open) for each in shape)
        }
        self.given: dict[int, Any] = {}  # sizes, as buffers on the device
        # Inputs that are full of one number, as numbers and as buffers at the bound.
        self.filled = dict(filled)
        self.full: dict[int, Any] = {}

    def admits(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Whether a call's sizes are within its ranges."""
        for tensor, (shape, own) in enumerate(zip(shapes, self.shapes, strict=True)):
            for axis, (size, known) in enumerate(zip(shape, own, strict=True)):
                symbol = self.open.dims.get((tensor, axis))
                if symbol is None and size != known:
                    return False
        sizes = self.open.sizes(shapes)
        return all(low <= size <= high for size, (low, high) in zip(sizes, self.open.ranges))

    def holds(self, shapes: Sequence[Sequence[int]], recorder: Recorder) -> bool:
        """Whether the function decides in Python as it did when it was recorded. Where that depends on the
        size, the function is recorded once for each size that comes."""
        if self.proof is None:
            return True
        known, sizes = self.proof.known, tuple(self.open.sizes(shapes))
        if sizes not in known:
            try:
                plan = recorder.at(shapes)
                require_alike(self.plan, plan)
                function = executables.lowered(plan.trace, plan.device, OPEN)
            except TenfoldError:
                known[sizes] = False
            else:
                known[sizes] = self.proof.holds(sizes, function)
        return known[sizes]

    def described(self) -> list[str]:
        places: dict[int, list[str]] = {}
        for (tensor, axis), symbol in self.open.dims.items():
            places.setdefault(symbol, []).append(f"dimension {axis} of tensor {tensor}")
        decided = (
            "" if self.proof is None else ", if the function decides there as it did where it was recorded"
        )
        return [
            *[
                f"{' and '.join(places[symbol])}: any size from {low} to {high}{decided}"
                for symbol, (low, high) in enumerate(self.open.ranges)
            ],
            *super().described(),
        ]

    def _is_expected(self, source: Any, value: Value) -> bool:
        return type(source) is int and source in self.padded

    def _load(self) -> Loaded:
        plan = self.plan
        return executables.build_function(self.made.function, plan.device, plan.donated, plan.packing)

    def _buffers(self, values: list[Value], arguments: Sequence[Any]) -> list[Any]:
        """The data of the values, on the device, padded where they are open; and the sizes."""
        device = self.plan.device
        whole = [each.type for each in self.made.function.params]
        padded = {
            i: self._padded(value, whole[place].shape)
            for i, (place, value) in enumerate(zip(self.plan.places, values, strict=True))
            if type(self.plan.alone[i].source) is int
            and self.plan.alone[i].source in self.padded
            and value.type is not whole[place]
        }
        for i, place in enumerate(self.plan.places):
            if place in self.filled:
                if place not in self.full:
                    number = self.filled[place]
                    self.full[place] = xla.put(np.full(whole[place].shape, number, number.dtype), device)
                padded[i] = self.full[place]
        rest = [value for i, value in enumerate(values) if i not in padded]
        closed = iter(super()._buffers(rest, arguments))
        buffers = [padded[i] if i in padded else next(closed) for i in range(len(values))]
        for size in self._sizes(arguments):
            if size not in self.given:
                self.given[size] = xla.put(np.asarray(size, np.int32), device)
            buffers.append(self.given[size])
        return buffers

    def _sizes(self, arguments: Sequence[Any]) -> list[int]:
        found = [0] * len(self.open.ranges)
        for (tensor, axis), symbol in self.open.dims.items():
            found[symbol] = arguments[tensor].shape[axis]
        return found

    def _padded(self, value: Value, shape: tuple[int, ...]) -> Any:
        array = evaluate.computed_array(value)
        whole = blank(shape, array.dtype)
        whole[tuple([slice(0, extent) for extent in array.shape])] = array
        return xla.put(whole, self.plan.device)

    def _explained(self, failure: Any, arguments: Sequence[Any]) -> Any:
        """The error with the sizes of this call in its message."""
        text = failure.message if isinstance(failure, TenfoldError) else None
        if not isinstance(text, OpenText):
            return failure
        at = dict(zip(self.symbols, self._sizes(arguments)))
        told = [each if isinstance(each, str) else self.formulas.formula(each).at(at) for each in text.parts]
        error = type(failure)("".join(map(str, told)), help=failure.help)
        return error.located(failure.op, failure.source, failure.operands)

    def _outcome(self, place: int, type: TensorType, buffer: Any, arguments: Sequence[Any]) -> Value:
        extents = self.extents.get(self.plan.results[place])
        if extents is None:
            return super()._outcome(place, type, buffer, arguments)
        at = dict(zip(self.symbols, self._sizes(arguments)))
        shape = tuple([each if isinstance(each, int) else each.at(at) for each in extents])
        cut = TensorType(type.dtype, shape)
        array = xla.fetch(buffer)
        if array.shape != shape:
            buffer = np.ascontiguousarray(array[tuple([slice(0, extent) for extent in shape])])
        return Value(cut, self.plan.device, None, 0, buffer)


def blank(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array to be filled in part: what is left of it may be anything."""
    return np.zeros(shape, dtype)


def why(error: TenfoldError) -> str:
    """Why something cannot be open, with the op and the user's line."""
    where = f" ({error.source.filename}:{error.source.line})" if error.source is not None else ""
    return f"{error.message}{where}"
