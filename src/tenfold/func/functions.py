"""A `Function` of the user's own inside a transformed function. Its forward, its backward and its jvp are
recorded and become one op with derivatives of its own, which vmap transforms like any other. Without a
jvp, tangents are derived from its backward."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tenfold import flat
from tenfold.autograd.custom import Context, Function, summed_to
from tenfold.base.bounded import Bounded
from tenfold.base.errors import ArgumentError, GradientError, UnsupportedError
from tenfold.base.source import capture
from tenfold.func.recorded import RecordedFunction
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace import tree
from tenfold.trace.graph import Value


class VmapInfo(NamedTuple):
    """What a Function's own `vmap` is told of the batch."""

    batch_size: int
    randomness: str


class _Call:
    """One call of a Function: its arguments, and its two halves as they are recorded."""

    def __init__(self, function: Any, args: tuple[Any, ...]):
        self.function = function
        self.args = args
        self.tensors = [arg for arg in args if isinstance(arg, Tensor)]
        self.values = [tensor.current() for tensor in self.tensors]
        self.maps = getattr(function, "vmap", None) is not None
        self.floats = [i for i, tensor in enumerate(self.tensors) if _carries(tensor)]

    def forward(self, stand_ins: Sequence[Tensor]) -> tuple[Context, Any]:
        arguments = iter(stand_ins)
        filled = [next(arguments) if isinstance(arg, Tensor) else arg for arg in self.args]
        ctx = Context(
            self.function, [isinstance(argument, Tensor) and _carries(argument) for argument in filled]
        )
        results = self.function.computed(ctx, filled)
        if ctx.dirty:
            raise UnsupportedError(
                f"{self.function.__name__} writes to its arguments: a transformed function cannot follow",
                help="return a new tensor",
            )
        ctx.close([])
        return ctx, results

    def backward(self, stand_ins: Sequence[Tensor]) -> list[Tensor]:
        """The cotangents of the arguments that have some, 0 where backward returns None."""
        inputs, cotangents = stand_ins[: len(self.tensors)], iter(stand_ins[len(self.tensors) :])
        ctx, results = self.forward(inputs)
        seeds: list[Tensor | None] = []
        for result in results if isinstance(results, tuple) else (results,):
            start = next(cotangents) if _carries(result) else None
            if start is None or any(result is other for other in ctx.non_differentiable):
                start = aten("zeros_like")(result) if ctx.materialize else None
            seeds.append(start)
        gradients = self.function.backward(ctx, *seeds)
        gradients = list(gradients) if isinstance(gradients, tuple) else [gradients]
        gradients += [None] * (len(self.args) - len(gradients))
        pairs = [pair for pair in zip(self.args, gradients, strict=False) if isinstance(pair[0], Tensor)]
        return [self.fitted(inputs[i], pairs[i][1]) for i in self.floats]

    def push(self, stand_ins: Sequence[Tensor]) -> list[Tensor]:
        """The tangents of the results that have some, 0 where jvp returns None."""
        inputs, moving = stand_ins[: len(self.tensors)], iter(stand_ins[len(self.tensors) :])
        ctx, results = self.forward(inputs)
        arguments = iter(inputs)
        filled = [next(arguments) if isinstance(arg, Tensor) else arg for arg in self.args]
        along = [
            next(moving) if isinstance(argument, Tensor) and _carries(argument) else None
            for argument in filled
        ]
        moved = self.function.pushed(ctx, filled, along, results)
        pairs = zip(results if isinstance(results, tuple) else (results,), moved, strict=True)
        return [
            aten("zeros_like")(result) if tangent is None else tangent
            for result, tangent in pairs
            if _carries(result)
        ]

    def batched(self, size: int, dims: Sequence[int | None], types: Sequence[Any]) -> RecordedFunction:
        """The Function's own `vmap`, recorded for a batch of arguments of these types."""
        device = self.values[0].device
        values = [Value(type, device) for type in types]
        stand_ins = [values[self.place(i)] for i in range(len(values))]
        name = f"{self.function.__name__}.vmap"
        with _recording(self.function, "vmap"):
            recorded = RecordedFunction(name, lambda tensors: self.mapped(size, dims, tensors), stand_ins)
        _refuse_writes(self.function, recorded)
        return recorded

    def mapped(self, size: int, dims: Sequence[int | None], stand_ins: Sequence[Tensor]) -> list[Tensor]:
        """What the Function's own `vmap` makes of a batch, stacked in front."""
        arguments = iter(zip(stand_ins, dims, strict=True))
        pairs = [next(arguments) if isinstance(arg, Tensor) else (arg, None) for arg in self.args]
        in_dims = tuple([dim for _, dim in pairs])
        name = self.function.__name__
        answer = self.function.vmap(
            VmapInfo(size, _under_way.randomness), in_dims, *[argument for argument, _ in pairs]
        )
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ArgumentError(
                f"{name}.vmap returns two things: the results, and where they count the batch"
            )
        results, places = answer
        results = results if isinstance(results, tuple) else (results,)
        places = places if isinstance(places, tuple) else (places,) * len(results)
        return [
            result.expand(size, *result.shape) if place is None else result.movedim(place, 0)
            for result, place in zip(results, places, strict=True)
        ]

    def fitted(self, argument: Tensor, gradient: Tensor | None) -> Tensor:
        if gradient is None:
            return aten("zeros_like")(argument)
        return summed_to(gradient, argument.current().type, self.function).to(argument.dtype)

    def others(self) -> Any:
        """Its arguments that are no tensors, as a key."""
        others = tuple([(type(arg), arg) for arg in self.args if not isinstance(arg, Tensor)])
        try:
            hash(others)
        except TypeError:
            return object()
        return others

    def place(self, argument: int) -> int:
        """Where an argument is first given: what is given twice is one input."""
        return self.values.index(self.values[argument])


def applied(function: Any, args: tuple[Any, ...]) -> Any:
    """The results of `Function.apply` while a function is recorded for a transform."""
    call = _Call(function, args)
    if not call.tensors:
        raise GradientError(f"{function.__name__} was applied to no tensor").located("apply", capture())
    ahead = RecordedFunction(function.__name__, lambda values: call.forward(values)[1], call.values)
    outputs = ahead.fragment().results[: ahead.count]
    device = call.values[0].device
    starts = [
        Value(output.type, device) for output in outputs if output.type.dtype.kind in ("float", "complex")
    ]
    along = [Value(call.values[i].type, device) for i in call.floats]
    _refuse_writes(function, ahead)
    back = push = None
    if function.backward is not Function.backward:
        back = _Rule(function, "backward", call.backward, [*call.values, *starts])
    if function.jvp is not None:
        push = _Rule(function, "jvp", call.push, [*call.values, *along])
    inputs = _Inputs(call, ahead, [rule for rule in (back, push) if rule is not None])
    key: Any = "function", function, back and back.key(call), push and push.key(call), tuple(inputs.key)
    if call.maps:
        inputs.batches = _batches_of((key, ahead.key, call.others()), call)
        key = key, call.others(), inputs.batches
    make = lambda: _composite(call, inputs, ahead, back, push)
    results = ahead.call(key, call.tensors, make, *inputs.more)
    return tree.unflatten(ahead.structure, iter(results))


def _refuse_writes(function: Any, recorded: RecordedFunction) -> None:
    if recorded.writes:
        raise UnsupportedError(
            f"{function.__name__} writes to a tensor, which a transformed function cannot follow",
            help="return a new tensor",
        ).located(function.__name__, capture())


class _Rule:
    """The backward or the jvp of a Function. It is recorded at once, unless that fails, or it calls the
    Function itself: the rules of that call are recorded if it is differentiated, or there would be no end."""

    def __init__(
        self,
        function: Any,
        name: str,
        call: Callable[[Sequence[Tensor]], list[Tensor]],
        values: Sequence[Any],
    ):
        self.function = function
        self.name = f"{function.__name__}.{name}"
        self.call = call
        self.values = values
        self._recorded: RecordedFunction | None = None
        self.is_late = (function, name) in _under_way.rules
        if not self.is_late:
            try:
                self.record()
            except Exception:  # raised again where a derivative asks for it: there may be none
                self.is_late = True

    def record(self) -> RecordedFunction:
        if self._recorded is None:
            with _recording(self.function, self.name.rpartition(".")[2]):
                self._recorded = RecordedFunction(self.name, self.call, self.values)
            _refuse_writes(self.function, self._recorded)
        return self._recorded

    def key(self, call: _Call) -> Any:
        """What tells it from the rules of other calls of the Function."""
        if not self.is_late:
            return self.record().key
        return call.others()


class _UnderWay(threading.local):
    """The rules that are being recorded in this thread, and what `vmap` was told of random numbers."""

    rules: frozenset[tuple[Any, str]] = frozenset()
    randomness: str = "error"


_under_way = _UnderWay()


@contextlib.contextmanager
def _recording(function: Any, rule: str) -> Iterator[None]:
    outer = _under_way.rules
    _under_way.rules = outer | {(function, rule)}
    try:
        yield
    finally:
        _under_way.rules = outer


@contextlib.contextmanager
def mapping(randomness: str) -> Iterator[None]:
    """A block that batches programs, in which Functions have a `vmap` of their own."""
    outer, _under_way.randomness = _under_way.randomness, randomness
    try:
        yield
    finally:
        _under_way.randomness = outer


class _Batches:
    """What the `vmap` of a Function has made of batches. It may read what is no argument, so that it is
    recorded once more at each call, to see that it still makes the same."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], Any] = {}  # by size, dims, types and randomness

    def note(self, size: int, dims: tuple[int | None, ...], types: tuple[Any, ...], key: Any) -> None:
        self.known[size, dims, types, _under_way.randomness] = key

    def hold(self, call: _Call) -> bool:
        for (size, dims, types, randomness), key in list(self.known.items()):
            with mapping(randomness):
                try:
                    if call.batched(size, dims, types).key != key:
                        return False
                except Exception:  # raised again where a batch asks for it: there may be none
                    return False
        return True


MOST = 8  # kinds of batches of a call that are told apart
_versions = Bounded(256)


def _batches_of(key: Any, call: _Call) -> _Batches | None:
    """The batches of a call that its Function's `vmap` still makes."""
    if (call.function, "vmap") in _under_way.rules:
        return None  # of a call in that very rule: what it is part of is looked at
    versions: list[_Batches] = _versions.get(key, list)
    for batches in versions:
        if batches.hold(call):
            return batches
    versions.append(_Batches())
    del versions[:-MOST]
    return versions[-1]


class _Inputs:
    """All that forward and the rules take: what forward does, then further arguments and tensors from
    outside."""

    def __init__(self, call: _Call, ahead: RecordedFunction, rules: Sequence[_Rule]):
        self.call, self.ahead = call, ahead
        self.batches: _Batches | None = None
        self.arguments = {place: i for i, place in enumerate(ahead.places) if place is not None}
        self.outside = {
            leaf: i
            for i, (leaf, place) in enumerate(zip(ahead.leaves, ahead.places, strict=True))
            if place is None
        }
        self.more: list[Tensor] = []
        self.key: list[int | None] = []
        known = [rule.record() for rule in rules if not rule.is_late]
        taken = [place for rule in known for place in rule.places]
        needed = [place for place in taken if place is not None and place < len(call.tensors)]
        if call.maps or len(known) < len(rules):  # what is recorded later may take any argument
            needed += [call.place(place) for place in range(len(call.tensors))]
        for place in dict.fromkeys([*map(call.place, call.floats), *needed]):
            if place not in self.arguments:
                self.arguments[place] = len(ahead.leaves) + len(self.more)
                self.more.append(call.tensors[place])
                self.key.append(place)
        for rule in known:
            for leaf, at in zip(rule.leaves, rule.places, strict=True):
                if at is None and leaf not in self.outside:
                    self.outside[leaf] = len(ahead.leaves) + len(self.more)
                    self.more.append(Tensor(leaf))
                    self.key.append(None)

    def at(self, argument: int) -> int:
        """Where one of the arguments that have derivatives is among the inputs."""
        return self.arguments[self.call.place(argument)]

    def taken(
        self, rule: RecordedFunction, values: Sequence[flat.Value], more: Sequence[flat.Value]
    ) -> list[flat.Value]:
        """What a rule takes, of the inputs and of what it is given after the arguments."""
        operands = []
        for leaf, place in zip(rule.leaves, rule.places, strict=True):
            if place is None:
                if leaf not in self.outside:
                    raise UnsupportedError(
                        f"a rule of {self.call.function.__name__} takes a tensor that is no argument of it",
                        help="pass the tensor as an argument",
                    )
                operands.append(values[self.outside[leaf]])
            elif place < len(self.call.tensors):
                operands.append(values[self.arguments[place]])
            else:
                operands.append(more[place - len(self.call.tensors)])
        return operands

    def mapped(self, size: int, operands: Sequence[flat.Value], having: Sequence[bool]) -> list[flat.Value]:
        """What the Function's own `vmap` makes of inputs of which some are stacked."""
        call = self.call
        places = [self.at(i) for i in range(len(call.tensors))]
        dims = tuple([0 if having[place] else None for place in places])
        types = tuple([operands[place].type for place in places])
        recorded = call.batched(size, dims, types)
        if self.batches is not None:
            self.batches.note(size, dims, types, recorded.key)
        return recorded.fragment().inline(self.taken(recorded, operands, ()), None, whole=True)


def _composite(
    call: _Call,
    inputs: _Inputs,
    forward: RecordedFunction,
    backward: _Rule | None,
    jvp: _Rule | None,
) -> flat.Function:
    ahead = forward.fragment()
    types = [value.type for value in (*forward.leaves, *[value.current() for value in inputs.more])]
    count = len(forward.leaves)

    def rule(
        cotangents: Sequence[flat.Value | None], results: Sequence[flat.Value], values: Sequence[flat.Value]
    ) -> list[flat.Value | None]:
        if backward is None:
            raise UnsupportedError(
                f"{call.function.__name__} has no backward", help="give it a static method backward"
            )
        pairs = zip(cotangents, results, strict=True)
        starts = [
            flat.full_like(result, 0) if cotangent is None else cotangent
            for cotangent, result in pairs
            if result.dtype.kind in ("float", "complex")
        ]
        totals: list[flat.Value | None] = [None] * len(values)
        recorded = backward.record()
        pulled = recorded.fragment().inline(inputs.taken(recorded, values, starts), None, whole=True)
        for argument, gradient in zip(call.floats, pulled, strict=True):
            at = inputs.at(argument)
            before = totals[at]
            totals[at] = gradient if before is None else before + gradient
        return totals

    def push(
        tangents: Sequence[flat.Value | None], operands: Sequence[flat.Value]
    ) -> list[flat.Value | None]:
        assert jvp is not None
        moving = [tangents[inputs.at(place)] for place in call.floats]
        along = [
            flat.full_like(operands[inputs.at(i)], 0) if tangent is None else tangent
            for i, tangent in zip(call.floats, moving, strict=True)
        ]
        recorded = jvp.record()
        moved = iter(recorded.fragment().inline(inputs.taken(recorded, operands, along), None, whole=True))
        floats = [result.dtype.kind in ("float", "complex") for result in ahead.results]
        return [next(moved) if is_float else None for is_float in floats]

    own = [flat.Value(type) for type in types]
    body = flat.Function(own, ahead.inline(own[:count], None, whole=True), ahead.name)
    params = [flat.Value(type) for type in types]
    mapped = inputs.mapped if call.maps else None
    composite = flat.Composite(tuple(params), body, rule, {}, None if jvp is None else push, mapped)
    return flat.Function(params, composite.results, "function")


def _carries(tensor: Tensor) -> bool:
    return tensor.dtype.kind in ("float", "complex")
