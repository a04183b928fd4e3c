"""A `Function` of the user's own inside a transformed function. Its forward is recorded, and so is its
backward; they become one op with a gradient of its own, which vmap and jvp transform as they do others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.autograd.custom import Context, summed_to
from tenfold.errors import GradientError, UnsupportedError
from tenfold.func.recording import Recorded, record
from tenfold.functional import aten
from tenfold.ops.table import Row
from tenfold.runtime import tree
from tenfold.source import capture
from tenfold.tensor import Tensor
from tenfold.trace.graph import Value

FUNCTION = Row("function(Tensor[] inputs) -> Tensor[]", lambda *values: values, {})


class _Call:
    """One call of a Function: its arguments, and its two halves as they are recorded."""

    def __init__(self, function: Any, args: tuple[Any, ...]):
        self.function = function
        self.args = args
        self.tensors = [each for each in args if isinstance(each, Tensor)]
        self.values = [each.current() for each in self.tensors]
        self.floats = [i for i, each in enumerate(self.tensors) if _carries(each)]

    def forward(self, stand_ins: Sequence[Tensor]) -> tuple[Context, Any]:
        given = iter(stand_ins)
        filled = [next(given) if isinstance(each, Tensor) else each for each in self.args]
        context = Context(self.function, [isinstance(each, Tensor) and _carries(each) for each in filled])
        results = self.function.computed(context, filled)
        if context.dirty:
            raise UnsupportedError(
                f"{self.function.__name__} writes to its arguments: a transformed function cannot follow",
                help="return a new tensor",
            )
        context.close([])
        return context, results

    def backward(self, stand_ins: Sequence[Tensor]) -> list[Tensor]:
        """The cotangents of the arguments that have some, 0 where backward returns None."""
        inputs, cotangents = stand_ins[: len(self.tensors)], iter(stand_ins[len(self.tensors) :])
        context, results = self.forward(inputs)
        given: list[Tensor | None] = []
        for each in results if isinstance(results, tuple) else (results,):
            start = next(cotangents) if _carries(each) else None
            if start is None or any(each is other for other in context.non_differentiable):
                start = aten("zeros_like")(each) if context.materialize else None
            given.append(start)
        found = self.function.backward(context, *given)
        found = list(found) if isinstance(found, tuple) else [found]
        found += [None] * (len(self.args) - len(found))
        pairs = [pair for pair in zip(self.args, found, strict=False) if isinstance(pair[0], Tensor)]
        return [self.fitted(inputs[i], pairs[i][1]) for i in self.floats]

    def fitted(self, argument: Tensor, found: Tensor | None) -> Tensor:
        if found is None:
            return aten("zeros_like")(argument)
        return summed_to(found, argument.current().type, self.function).to(argument.dtype)

    def place(self, argument: int) -> int:
        """Where an argument is first given: what is given twice is one input."""
        return self.values.index(self.values[argument])


def applied(function: Any, args: tuple[Any, ...]) -> Any:
    """What `Function.apply` gives while a function is recorded for a transformation."""
    call = _Call(function, args)
    if not call.tensors:
        raise GradientError(f"{function.__name__} was applied to no tensor").located("apply", capture())
    ahead = record(function.__name__, lambda given: call.forward(given)[1], call.values)
    outputs = ahead.fragment().results[: ahead.count]
    device = call.values[0].device
    starts = [Value(each.type, device) for each in outputs if each.type.dtype.kind in ("float", "complex")]
    back = record(f"{function.__name__}.backward", call.backward, [*call.values, *starts])
    if ahead.writes or back.writes:
        raise UnsupportedError(
            f"{function.__name__} writes to a tensor, which a transformed function cannot follow",
            help="return a new tensor",
        ).located(function.__name__, capture())
    inputs = _Inputs(call, ahead, back)
    key = (function, back.key, tuple(inputs.key))
    results = ahead.call(FUNCTION, key, call.tensors, lambda: _composite(call, inputs), *inputs.more)
    return tree.unflatten(ahead.structure, iter(results))


class _Inputs:
    """All that both halves take: what forward does, then further arguments and tensors from outside."""

    def __init__(self, call: _Call, ahead: Recorded, back: Recorded):
        self.ahead, self.back = ahead, back
        self.arguments = {place: i for i, place in enumerate(ahead.places) if place is not None}
        self.outside = {
            leaf: i
            for i, (leaf, place) in enumerate(zip(ahead.leaves, ahead.places, strict=True))
            if place is None
        }
        self.more: list[Tensor] = []
        self.key: list[int | None] = []
        needed = [each for each in back.places if each is not None and each < len(call.tensors)]
        for place in dict.fromkeys([*map(call.place, call.floats), *needed]):
            if place not in self.arguments:
                self.arguments[place] = len(ahead.leaves) + len(self.more)
                self.more.append(call.tensors[place])
                self.key.append(place)
        for leaf, at in zip(back.leaves, back.places, strict=True):
            if at is None and leaf not in self.outside:
                self.outside[leaf] = len(ahead.leaves) + len(self.more)
                self.more.append(Tensor(leaf))
                self.key.append(None)


def _composite(call: _Call, inputs: _Inputs) -> flat.Function:
    ahead, back = inputs.ahead.fragment(), inputs.back.fragment()
    types = [each.type for each in (*inputs.ahead.leaves, *[each.current() for each in inputs.more])]
    count = len(inputs.ahead.leaves)

    def rule(
        cotangents: Sequence[flat.Value | None], results: Sequence[flat.Value], given: Sequence[flat.Value]
    ) -> list[flat.Value | None]:
        pairs = zip(cotangents, results, strict=True)
        starts = [
            flat.full_like(result, 0) if each is None else each
            for each, result in pairs
            if result.dtype.kind in ("float", "complex")
        ]
        taken = []
        for leaf, place in zip(inputs.back.leaves, inputs.back.places, strict=True):
            if place is None:
                taken.append(given[inputs.outside[leaf]])
            elif place < len(call.tensors):
                taken.append(given[inputs.arguments[place]])
            else:
                taken.append(starts[place - len(call.tensors)])
        found: list[flat.Value | None] = [None] * len(given)
        for argument, each in zip(call.floats, back.inline(taken, None, whole=True), strict=True):
            at = inputs.arguments[call.place(argument)]
            before = found[at]
            found[at] = each if before is None else before + each
        return found

    own = [flat.Value(each) for each in types]
    body = flat.Function(own, ahead.inline(own[:count], None, whole=True), ahead.name)
    params = [flat.Value(each) for each in types]
    return flat.Function(params, flat.Composite(tuple(params), body, rule, {}).results, ahead.name)


def _carries(tensor: Tensor) -> bool:
    return tensor.dtype.kind in ("float", "complex")
