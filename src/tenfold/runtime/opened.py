"""A compiled function whose sizes are open, ready to run: one executable for all sizes in a range. Its inputs
are padded to the bounds and its results cut to their true sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.base.bounded import Bounded
from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.base.garbage import uncollected
from tenfold.base.warning import warn
from tenfold.engines import xla
from tenfold.flat.ir import Function, TensorType
from tenfold.flat.merging import merged_functions
from tenfold.flat.open_layout import LIMIT, Sizes
from tenfold.flat.opening import Opened, opened
from tenfold.flat.sizes import Formula, Open, OpenText
from tenfold.runtime import data_sizes, evaluate, executables
from tenfold.runtime.checks import Loaded
from tenfold.runtime.data_sizes import Proved
from tenfold.runtime.decisions import Proof, holds_throughout
from tenfold.runtime.exact_counts import EachSpecialization, Elsewhere, Exact
from tenfold.runtime.guards import Owners
from tenfold.runtime.integers import name_of
from tenfold.runtime.plan import Plan, Target
from tenfold.runtime.ranges import Range, chosen, possible
from tenfold.runtime.recordings import (
    OpenDims,
    Recorder,
    UnknownSizes,
    require_alike,
    require_plain,
)
from tenfold.runtime.specialization import OTHER, Specialization, Wrap
from tenfold.trace.graph import Value
from tenfold.trace.lower import OPEN


def specialize(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], tensor: type, room: dict[int, int]
) -> Specialization:
    """Record a function on arguments like these, to be called again."""
    recorder = Recorder(function, args, kwargs, tensor, room)
    try:
        plan = recorder.plainly()
    except UnknownSizes as error:
        failed = error.__cause__
        assert isinstance(failed, TenfoldError)
        where = f" ({failed.source.filename}:{failed.source.line})" if failed.source is not None else ""
        return _apart(recorder, recorder.exactly(), f"{failed.op or 'an op'} has to know it{where}")
    return specialized(recorder, plan)


def specialized(recorder: Recorder, plan: Plan) -> Specialization:
    """A function for closed sizes of its arguments. Where there are sizes that depend on data, these are
    open."""
    if not plan.counts:
        return Specialization(plan)
    shapes = [tuple(argument.shape) for argument in recorder.given]
    try:
        return open_specialization(recorder, OpenDims({}, ()), shapes, steady=False)
    except UnsupportedError as error:
        return _apart(recorder, plan, why(error))


def _apart(recorder: Recorder, plan: Plan, reason: str) -> Specialization:
    """A function that is compiled apart for each number of elements."""
    try:
        _require_apart(plan)
    except UnsupportedError as refusal:
        raise UnknownSizes(plan.counts, why(refusal), refusal.help) from None
    warn(
        f"compile: the size of {plan.counts[0].what} depends on data, and the function is compiled apart for "
        f"each number of elements: {reason}"
    )
    return EachSpecialization(plan, recorder, reason)


def _require_apart(plan: Plan) -> None:
    """Refuse a function that cannot even be compiled for each number of elements separately."""
    require_plain(plan, steady=False)
    if max([count.bound for count in plan.counts]) >= LIMIT:
        raise UnsupportedError("there would have to be room for too many elements")
    for (kind, target), type in zip(plan.targets, plan.result_types):
        if kind == "written" and target.current().type is not type:
            raise _state_of_open_size()


def open_specialization(
    recorder: Recorder, open: OpenDims, shapes: Sequence[Sequence[int]], steady: bool
) -> OpenSpecialization:
    """Record a call at several sizes and open what differs. UnsupportedError says why that cannot be; with
    `steady`, also since the function changes Python state whenever it is recorded."""
    first = recorder.own or recorder.plainly()
    require_plain(first, steady)
    try:
        return _open_specialization(recorder, first, open, shapes)
    finally:
        if not first.found.steady:
            recorder.plainly()  # what the function left behind is to come from the call as it is


def _open_specialization(
    recorder: Recorder, first: Plan, open: OpenDims, shapes: Sequence[Sequence[int]]
) -> OpenSpecialization:
    own = open.sizes(shapes)
    open = open.narrowed(
        own, possible(lambda sizes: recorder.at(open.shapes(shapes, sizes)), open.ranges, own)
    )
    own = open.sizes(shapes)
    sizes = [own, own, *chosen(open.ranges, own, {extent for shape in shapes for extent in shape})]
    sizes += [own] * (data_sizes.RECORDINGS - len(sizes) if first.counts else 0)
    # Sizes that depend on data are others each time.
    turns = [turn if first.counts else 1 for turn in range(len(sizes))]
    plans = [first]
    for size, turn in zip(sizes[1:], turns[1:]):
        try:
            plans.append(recorder.at(open.shapes(shapes, size), turn))
        except TenfoldError as error:
            told = ", ".join(map(str, size))
            raise UnsupportedError(f"at sizes {told} the function fails: {error.message}").located(
                error.op, error.source
            ) from None
    filled: dict[int, Any] = {}
    for other in plans[1:]:
        filled.update(require_alike(first, other))
    ranges = {Open([size[i] for size in sizes]): open.ranges[i] for i in range(len(own))}
    if len(ranges) < len(own):
        raise UnsupportedError("two sizes cannot be told apart in so small a range")
    asked = [recorder.asked_at(open.shapes(shapes, size), turn) for size, turn in zip(sizes[1:], turns[1:])]
    limits = data_sizes.limits(plans, ranges)
    program = OpenProgram(plans, sizes, ranges, limits)
    proof = proved = None
    watched = {Open(symbol.values[1:]): ends for symbol, ends in program.ranges.items()}
    decides = program.made.uncertain or not holds_throughout(asked, watched)
    if first.counts:
        if decides and open.dims:
            raise UnsupportedError("the function decides in Python by sizes, some of which depend on data")
        counts = [limit.opened for limit in limits]
        proved = Proved(Proof(program.functions, ranges, program.made, counts), first, open, shapes, decides)
    else:
        proof = Proof(program.functions, ranges, program.made)
        corners = [[size[end] for size in open.ranges] for end in (0, 1)] if len(own) > 1 else []
        if not decides and all(
            _holds_at(corner, proof, recorder, first, open.shapes(shapes, corner)) for corner in corners
        ):
            proof = None
    return OpenSpecialization(first, open, shapes, program, filled, proof, proved, recorder)


def _holds_at(
    sizes: Sequence[int], proof: Proof, recorder: Recorder, first: Plan, shapes: Sequence[Sequence[int]]
) -> bool:
    """Whether the function, recorded at these sizes, is the program that was opened. No recording has all
    sizes at their least or most, where a slice may end that leads past a product of them."""
    try:
        plan = recorder.at(shapes)
        require_alike(first, plan)
        function = executables.lowered(plan.trace, plan.device, OPEN)
    except TenfoldError:
        return False
    return proof.holds(sizes, function)


class OpenProgram:
    """Recordings at several sizes as one program at the bounds of its sizes: `given` ones, which the
    arguments tell, and then those that depend on data, by their `limits`."""

    def __init__(
        self,
        plans: Sequence[Plan],
        sizes: Sequence[Sequence[int]],
        symbols: Mapping[Open, Range],
        limits: Sequence[data_sizes.Limit],
    ):
        self.functions = [executables.lowered(plan.trace, plan.device, OPEN) for plan in plans]
        with uncollected():
            self.merged = merged_functions(
                self.functions, lambda k: f"sizes {', '.join(map(str, sizes[k]))}" if sizes[k] else "others"
            )
        self.given = symbols
        self.limits = list(limits)
        self.made: Opened
        self.sizes: Sizes
        self._open()
        _require_closed_state(plans[0], self.made)

    @property
    def ranges(self) -> dict[Open, Range]:
        return {**self.given, **{limit.symbol: (0, limit.bound) for limit in self.limits}}

    def _open(self) -> None:
        with uncollected():
            self.made = opened(self.merged, dict(self.given), [limit.opened for limit in self.limits])
        params = self.function.params
        self.sizes = Sizes(self.ranges, params[len(params) - len(self.given) :])

    @property
    def function(self) -> Function:
        return self.made.function


def _require_closed_state(plan: Plan, program: Opened) -> None:
    """Refuse results of open size that replace state or gradients, whose sizes are closed."""
    for i, (kind, _) in enumerate(plan.targets):
        if kind in ("written", "gradient") and any(isinstance(extent, Open) for extent in program.shapes[i]):
            raise _state_of_open_size()


def _state_of_open_size() -> UnsupportedError:
    return UnsupportedError("a tensor outside of the function gets another size at each call")


class OpenSpecialization(Specialization):
    """A function on arguments whose sizes are open."""

    tells_elsewhere = True

    def __init__(
        self,
        plan: Plan,
        open: OpenDims,
        shapes: Sequence[Sequence[int]],
        program: OpenProgram,
        filled: Mapping[int, Any],
        proof: Proof | None,
        proved: Proved | None,
        recorder: Recorder,
    ):
        super().__init__(plan)
        self.proof = proof
        self.proved = proved
        self.exact = Exact(recorder)
        self.plain = False
        self.open = open
        self.shapes = [tuple(shape) for shape in shapes]
        self.open_program = program
        self.of_open_arguments = bool(open.dims)
        self.padded = {tensor for tensor, _ in open.dims}
        self.names = [
            name_of(argument._value) for argument in recorder.given
        ]  # of integers, what they are called
        self.symbols = list(program.ranges)
        # For each result of open size, its extents: numbers, or formulas over the symbols.
        self.extents: dict[int, list[int | Formula]] = {
            i: [program.sizes.formula(extent) if isinstance(extent, Open) else extent for extent in shape]
            for i, shape in enumerate(program.made.shapes)
            if any(isinstance(extent, Open) for extent in shape)
        }
        self.room = recorder.room
        self.counts = [i for i, (kind, _) in enumerate(plan.alone_targets) if kind == "count"]
        self.given = Bounded(64)  # sizes, as buffers on the device
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
        proof, sizes = self.proof, tuple(self.open.sizes(shapes))
        return proof.known.get(sizes, lambda: _holds_at(sizes, proof, recorder, self.plan, shapes))

    def described(self, owners: Owners) -> list[str]:
        places: dict[int, list[str]] = {}
        for (tensor, axis), symbol in self.open.dims.items():
            places.setdefault(symbol, []).append(self.names[tensor] or f"dimension {axis} of tensor {tensor}")
        decided = "" if self.proof is None else " at which the function takes the recorded branches"
        return [
            *[
                f"{' and '.join(places[symbol])}: any size from {low} to {high}{decided}"
                for symbol, (low, high) in enumerate(self.open.ranges)
            ],
            *[limit.described for limit in self.open_program.limits],
            *super().described(owners),
        ]

    def _is_expected(self, source: Any, value: Value) -> bool:
        return type(source) is int and source in self.padded

    def _load(self) -> Loaded:
        plan = self.plan
        return executables.build_function(self.open_program.function, plan.device, plan.donated, plan.packing)

    def _buffers(self, values: list[Value], arguments: Sequence[Any]) -> list[Any]:
        """The data of the values, on the device, padded where they are open; and the sizes."""
        device = self.plan.device
        whole = [param.type for param in self.open_program.function.params]
        padded = {
            i: self._padded(value, whole[place].shape)
            for i, (place, value) in enumerate(zip(self.plan.places, values, strict=True))
            if type(self.plan.alone[i][0]) is int
            and self.plan.alone[i][0] in self.padded
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
        put = lambda size: xla.put(np.asarray(size, np.int32), device)
        sizes = self._sizes(arguments)
        return [*buffers, *[self.given.get(size, functools.partial(put, size)) for size in sizes]]

    def _sizes(self, arguments: Sequence[Any]) -> list[int]:
        sizes = [0] * len(self.open.ranges)
        for (tensor, axis), symbol in self.open.dims.items():
            sizes[symbol] = arguments[tensor].shape[axis]
        return sizes

    def _padded(self, value: Value, shape: tuple[int, ...]) -> Any:
        return evaluate.padded(value, shape, self.plan.device)

    def _explained(self, failure: Any, computed: Sequence[Any], arguments: Sequence[Any]) -> Any:
        """The error with the sizes of this call in its message."""
        text = failure.message if isinstance(failure, TenfoldError) else None
        if not isinstance(text, OpenText):
            return failure
        at = self._sizes_by_symbol(arguments, computed)
        told = [
            part if isinstance(part, str) else self.open_program.sizes.formula(part).at(at)
            for part in text.parts
        ]
        error = type(failure)("".join(map(str, told)), help=failure.help)
        return error.located(failure.op, failure.source, failure.operands)

    def _sizes_by_symbol(self, arguments: Sequence[Any], computed: Sequence[Any]) -> dict[Open, int]:
        return dict(zip(self.symbols, [*self._sizes(arguments), *data_sizes.counted(self.counts, computed)]))

    @property
    def outgrown(self) -> bool:
        """Whether there were more elements than it has room for."""
        limits = enumerate(self.open_program.limits)
        return any(not limit.bounded and self.room.get(i, 0) > limit.bound for i, limit in limits)

    def _elsewhere(self, computed: Sequence[Any], arguments: Sequence[Any]) -> Any:
        if self.proved is None:
            return None
        counts = data_sizes.counted(self.counts, computed)
        for place, (count, limit) in enumerate(zip(counts, self.open_program.limits)):
            if count > limit.bound:
                self.room[place] = count
                return OTHER
        return None if self.proved.includes(self._sizes(arguments), counts) else Elsewhere(counts)

    def run(self, arguments: Sequence[Any], wrap: Wrap) -> Any:
        result = super().run(arguments, wrap)
        if type(result) is not Elsewhere:
            return result
        assert self.proved is not None
        sizes, counts = self._sizes(arguments), result.counts
        recorder = self.exact.recorder(arguments, self.room)
        if self.proved.includes(sizes, counts) is None and self.proved.learn(recorder, sizes, counts):
            if not self.plan.found.steady:
                recorder.plainly()  # what the function left behind is to come from the call as it is
            result = super().run(arguments, wrap)
        if type(result) is Elsewhere:
            result, _ = self.exact.run(recorder, result, arguments, wrap)
        return result

    def fits(self, arguments: Sequence[Any]) -> list[Value] | None:
        return None if self.outgrown else super().fits(arguments)

    def broken(self, arguments: Sequence[Any]) -> str:
        if self.outgrown:
            return "a size that depends on data was larger than there was room for"
        return super().broken(arguments)

    def _outcomes(self, computed: Sequence[Any], arguments: Sequence[Any]) -> list[tuple[Target, Value]]:
        moved = self.plan.moved
        return [(target, self._outcome(i, type, computed, arguments)) for i, type, target in moved]

    def _outcome(
        self, place: int, type: TensorType, computed: Sequence[Any], arguments: Sequence[Any]
    ) -> Value:
        """A result that travels alone, without its padding."""
        extents = self.extents.get(self.plan.results[place])
        if extents is None:
            return Value(type, self.plan.device, None, 0, computed[place])
        at = self._sizes_by_symbol(arguments, computed)
        shape = tuple([extent if isinstance(extent, int) else extent.at(at) for extent in extents])
        cut = TensorType(type.dtype, shape)
        buffer = computed[place]
        array = xla.fetch(buffer)
        if array.shape != shape:
            buffer = np.ascontiguousarray(array[tuple([slice(0, extent) for extent in shape])])
        return Value(cut, self.plan.device, None, 0, buffer)


def why(error: TenfoldError) -> str:
    """Why something cannot be open, with the op and the user's line."""
    where = f" ({error.source.filename}:{error.source.line})" if error.source is not None else ""
    return f"{error.message}{where}"
