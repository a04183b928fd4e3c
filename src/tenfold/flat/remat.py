"""Lowerings whose gradient computes them again from their arguments, where memory costs more than arithmetic.

On a GPU an elementwise function of half-precision tensors is bound by memory: what its gradient needs is
cheaper to compute again than to write out, in float32 at that, and to read back. XLA would merge the second
computation with the first; an optimization barrier keeps it from doing so. On other devices merging is right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.flat.composite import Composite
from tenfold.flat.elementwise import OptimizationBarrier
from tenfold.flat.grad import gradients
from tenfold.flat.ir import Function, Value


def recomputed(lowering: Callable[..., Value]) -> Callable[..., Value]:
    """Decorate a lowering of one result, so that on CUDA its gradient keeps nothing but its arguments."""

    @functools.wraps(lowering)
    def call(*arguments: Any) -> Value:
        places = [i for i, argument in enumerate(arguments) if isinstance(argument, Value)]

        def on(values: Sequence[Value]) -> Value:
            given = list(arguments)
            for place, value in zip(places, values, strict=True):
                given[place] = value
            return lowering(*given)

        inputs = tuple([arguments[i] for i in places])
        params = [type(operand)(operand.type) for operand in inputs]
        body = Function(params, (on(params),), lowering.__name__)

        def rule(cotangents: Sequence[Any], results: Sequence[Value], values: Sequence[Value]) -> list[Any]:
            return pulled_back(body, values, cotangents[0])

        return Composite(inputs, body, rule, {}, None).result

    return call


def pulled_back(body: Function, values: Sequence[Value], cotangent: Value) -> list[Value | None]:
    """The cotangents of a function's parameters, as one composite that computes the function first."""
    start = Value(cotangent.type)
    found = gradients(body.ops, body.results, [start], body.params)
    plain = _function([*body.params, start], found, f"{body.name}_gradient")
    if not plain.results:
        return found
    others = [Value(param.type) for param in plain.params]
    apart = OptimizationBarrier(tuple(others)).results
    cuda = Function(others, plain.inline(apart, whole=True), plain.name)

    def rule(cotangents: Sequence[Any], results: Sequence[Value], given: Sequence[Value]) -> list[Any]:
        starts = [None if each is None else Value(each.type) for each in cotangents]
        second = gradients(plain.ops, plain.results, starts, plain.params)
        used = [each for each in starts if each is not None]
        arguments = [*given, *[each for each in cotangents if each is not None]]
        made = iter(_function([*plain.params, *used], second, plain.name).inline(arguments, whole=True))
        return [None if each is None else next(made) for each in second]

    made = iter(Composite((*values, cotangent), plain, rule, {"cuda": cuda}, None).results)
    return [None if each is None else next(made) for each in found]


def _function(params: Sequence[Value], results: Sequence[Value | None], name: str) -> Function:
    return Function(params, [result for result in results if result is not None], name)
