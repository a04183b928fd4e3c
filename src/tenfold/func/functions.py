"""A `Function` of the user's own inside a transformed function. Its forward, its backward and its jvp are
recorded and become one op with derivatives of its own, which vmap transforms like any other. Without a
jvp, tangents are derived from its backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.autograd.custom import Context, Function, summed_to
from tenfold.base.errors import GradientError, UnsupportedError
from tenfold.base.source import capture
from tenfold.func.recorded import RecordedFunction
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace import tree
from tenfold.trace.graph import Value


class _Call:
    """One call of a Function: its arguments, and its two halves as they are recorded."""

    def __init__(self, function: Any, args: tuple[Any, ...]):
        self.function = function
        self.args = args
        self.tensors = [arg for arg in args if isinstance(arg, Tensor)]
        self.values = [tensor.current() for tensor in self.tensors]
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

    def fitted(self, argument: Tensor, gradient: Tensor | None) -> Tensor:
        if gradient is None:
            return aten("zeros_like")(argument)
        return summed_to(gradient, argument.current().type, self.function).to(argument.dtype)

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
    back = push = None
    if function.backward is not Function.backward:
        back = RecordedFunction(f"{function.__name__}.backward", call.backward, [*call.values, *starts])
    if function.jvp is not None:
        push = RecordedFunction(f"{function.__name__}.jvp", call.push, [*call.values, *along])
    if any(recorded is not None and recorded.writes for recorded in (ahead, back, push)):
        raise UnsupportedError(
            f"{function.__name__} writes to a tensor, which a transformed function cannot follow",
            help="return a new tensor",
        ).located(function.__name__, capture())
    inputs = _Inputs(call, ahead, [recorded for recorded in (back, push) if recorded is not None])
    key = ("function", function, back and back.key, push and push.key, tuple(inputs.key))
    make = lambda: _composite(call, inputs, ahead, back, push)
    results = ahead.call(key, call.tensors, make, *inputs.more)
    return tree.unflatten(ahead.structure, iter(results))


class _Inputs:
    """All that forward and the rules take: what forward does, then further arguments and tensors from
    outside."""

    def __init__(self, call: _Call, ahead: RecordedFunction, rules: Sequence[RecordedFunction]):
        self.call, self.ahead = call, ahead
        self.arguments = {place: i for i, place in enumerate(ahead.places) if place is not None}
        self.outside = {
            leaf: i
            for i, (leaf, place) in enumerate(zip(ahead.leaves, ahead.places, strict=True))
            if place is None
        }
        self.more: list[Tensor] = []
        self.key: list[int | None] = []
        taken = [place for rule in rules for place in rule.places]
        needed = [place for place in taken if place is not None and place < len(call.tensors)]
        for place in dict.fromkeys([*map(call.place, call.floats), *needed]):
            if place not in self.arguments:
                self.arguments[place] = len(ahead.leaves) + len(self.more)
                self.more.append(call.tensors[place])
                self.key.append(place)
        for rule in rules:
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
                operands.append(values[self.outside[leaf]])
            elif place < len(self.call.tensors):
                operands.append(values[self.arguments[place]])
            else:
                operands.append(more[place - len(self.call.tensors)])
        return operands


def _composite(
    call: _Call,
    inputs: _Inputs,
    forward: RecordedFunction,
    backward: RecordedFunction | None,
    jvp: RecordedFunction | None,
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
        pulled = backward.fragment().inline(inputs.taken(backward, values, starts), None, whole=True)
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
        moved = iter(jvp.fragment().inline(inputs.taken(jvp, operands, along), None, whole=True))
        floats = [result.dtype.kind in ("float", "complex") for result in ahead.results]
        return [next(moved) if is_float else None for is_float in floats]

    own = [flat.Value(type) for type in types]
    body = flat.Function(own, ahead.inline(own[:count], None, whole=True), ahead.name)
    params = [flat.Value(type) for type in types]
    composite = flat.Composite(tuple(params), body, rule, {}, None if jvp is None else push)
    return flat.Function(params, composite.results, "function")


def _carries(tensor: Tensor) -> bool:
    return tensor.dtype.kind in ("float", "complex")
