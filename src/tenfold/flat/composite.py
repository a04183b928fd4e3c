"""Several ops that differentiate as one: how a lowering overrides its gradient.

    @differentiated(lambda ct, result, x: (flat.where(result > 0, ct, 0),))
    def relu(x):
        return flat.maximum(x, 0)

Called on FlatIR values, such a lowering gives a `Composite`, whose body is what it computes and whose rule is
what it differentiates by. It has no counterpart in StableHLO: where a function is inlined, its body remains.
On a type of device where there is something better, the body is another: `elsewhere={"cuda": lowering}`. One
for "triton" is for a single CUDA device: it calls kernels of our own, which cannot be split over a mesh.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tenfold.flat.elementwise import Convert
from tenfold.flat.ir import Function, LateNumber, Op, TensorType, Value

Rule = Callable[[Sequence[Value | None], Sequence[Value], Sequence[Value]], Sequence[Value | None]]


Push = Callable[[Sequence[Value | None], Sequence[Value]], Sequence[Value | None]]


Mapped = Callable[[int, Sequence[Value], Sequence[bool]], Sequence[Value]]


class Composite(Op):
    """`body` on `inputs`. `rule` turns the results' cotangents (None for what has none), the results and the
    inputs into the inputs' cotangents (None for no gradient). `elsewhere` has other bodies, by the type of
    device that they are for. `push` turns the inputs' tangents and the inputs into the results' tangents; it
    may be None: the rule tells of them, too. `mapped` gives the results for a batch of this size, stacked in
    front, from inputs of which some are stacked so; it may be left out: then the body is batched."""

    name: ClassVar[str] = "tenfold.composite"
    inputs: tuple[Value, ...]
    body: Function
    rule: Rule
    elsewhere: dict[str, Function]
    push: Push | None
    mapped: Mapped | None

    def __init__(self, *values: Any):
        super().__init__(*values, *[None] * (len(self.fields) - len(values)))

    def body_for(self, device: str) -> Function:
        """The body on a type of device; "triton" is a CUDA device alone."""
        found = self.elsewhere.get(device)
        if found is None and device == "triton":
            found = self.elsewhere.get("cuda")
        return self.body if found is None else found

    def infer(self) -> tuple[TensorType, ...]:
        types = tuple([result.type for result in self.body.results])
        self.body.expect("composite: its body", [operand.type for operand in self.inputs], types)
        return types


def stopped(
    cotangents: Sequence[Value | None], results: Sequence[Value], inputs: Sequence[Value]
) -> Sequence[Value | None]:
    """The rule of what no gradient flows through."""
    return [None] * len(inputs)


def stop_gradient(value: Value) -> Value:
    """The value itself, as a constant to all derivatives."""
    param = Value(value.type)
    return Composite((value,), Function([param], [param], "stop_gradient"), stopped, {}, None).result


def untracked(value: Value) -> Value:
    """The value itself, as a constant to gradients: they do not pass `no_grad`, and tangents do."""
    param = Value(value.type)
    push: Push = lambda tangents, inputs: (None if tangents[0] is None else untracked(tangents[0]),)
    return Composite((value,), Function([param], [param], "untracked"), stopped, {}, push).result


def beside(value: Value, source: Value) -> Value:
    """The value itself, whose gradients are those of `source`. So is its tangent if it has none of its own:
    it was written through `detach` or `.data`, and not under `no_grad`."""
    params = [Value(value.type), Value(source.type)]
    body = Function(params, params[:1], "beside")
    rule: Rule = lambda cotangents, results, inputs: (None, cotangents[0])

    def push(tangents: Sequence[Value | None], inputs: Sequence[Value]) -> Sequence[Value | None]:
        own, of_source = tangents
        if own is None or of_source is None:
            return [of_source if own is None else own]
        return [beside(own, of_source)]

    return Composite((value, source), body, rule, {}, push).result


def _number(value: Value) -> LateNumber:
    """A value that a late number became, as one again."""
    return LateNumber.of(Convert(value, value.dtype).result)


def differentiated(
    rule: Callable[..., Any], elsewhere: dict[str, Callable[..., Any]] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a lowering differentiate by `rule(cotangent, result, *arguments)`: the arguments are the lowering's
    own; it returns a cotangent, or None, for each FlatIR value among them, in order. A lowering of several
    results gets tuples of cotangents and results; a result without a cotangent, such as one of integers, has
    None there."""

    def decorate(lowering: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(lowering)
        def call(*arguments: Any) -> Any:
            places = [i for i, argument in enumerate(arguments) if isinstance(argument, Value)]

            def given(values: Sequence[Value]) -> list[Any]:
                filled = list(arguments)
                for place, value in zip(places, values, strict=True):
                    filled[place] = value
                return filled

            inputs = [arguments[i] for i in places]
            late = [type(operand) is LateNumber for operand in inputs]
            params = [type(operand)(operand.type) for operand in inputs]
            result = lowering(*given(params))
            several = isinstance(result, (tuple, list))

            def on_values(
                cotangents: Sequence[Value | None], results: Sequence[Value], values: Sequence[Value]
            ) -> Sequence[Value | None]:
                if any(late):  # what stands for a number is one to the rule as well, and has no cotangent
                    values = [_number(v) if number else v for v, number in zip(values, late, strict=True)]
                if several:
                    gradients = rule(tuple(cotangents), tuple(results), *given(values))
                else:
                    gradients = rule(cotangents[0], results[0], *given(values))
                remaining = iter(gradients)
                return [None if number else next(remaining) for number in late] if any(late) else gradients

            body = Function(params, result if several else (result,), lowering.__name__)
            others = {}
            for device, other in (elsewhere or {}).items():
                places_there = [type(operand)(operand.type) for operand in inputs]
                there = other(*given(places_there))
                others[device] = Function(places_there, there if several else (there,), other.__name__)
            results = Composite(tuple(inputs), body, on_values, others, None).results
            return type(result)(results) if several else results[0]

        return call

    return decorate
