"""Lowerings whose gradient computes them again from their arguments, where memory costs more than arithmetic.

On a GPU an elementwise function of half-precision tensors is bound by memory: what its gradient needs is
cheaper to compute again than to write out, in float32 at that, and to read back. XLA would merge the second
computation with the first; an optimization barrier keeps it from doing so. On other devices merging is right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold.flat.composite import Composite
from tenfold.flat.elementwise import OptimizationBarrier
from tenfold.flat.grad import gradients
from tenfold.flat.ir import Function, Value


class Tiles(NamedTuple):
    """A function and its gradient by kernels of our own, where they fit the arguments."""

    fits: Callable[..., bool]
    function: Callable[..., Value]
    gradient: Callable[..., Value]  # the cotangent first


def recomputed(lowering: Callable[..., Value], tiles: Tiles | None = None) -> Callable[..., Value]:
    """A lowering of one result whose gradient on CUDA keeps nothing but its arguments. `tiles` may have other
    lowerings for a CUDA device alone, of the function and of its gradient."""

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
        elsewhere: dict[str, Function] = {}
        gradient = None
        if tiles is not None and len(inputs) == 1 and tiles.fits(*arguments):
            param, gradient = Value(inputs[0].type), tiles.gradient
            elsewhere["triton"] = Function([param], (tiles.function(param),), body.name)

        def rule(cotangents: Sequence[Any], results: Sequence[Value], values: Sequence[Value]) -> list[Any]:
            return pulled_back(body, values, cotangents[0], gradient)

        return Composite(inputs, body, rule, elsewhere, None).result

    return call


def pulled_back(
    body: Function, values: Sequence[Value], cotangent: Value, tiled: Callable[..., Value] | None = None
) -> list[Value | None]:
    """The cotangents of a function's parameters, as one composite that computes the function first; on a CUDA
    device alone it may be `tiled`."""
    start = Value(cotangent.type)
    pulled_gradients = gradients(body.ops, body.results, [start], body.params)
    plain = _function([*body.params, start], pulled_gradients, f"{body.name}_gradient")
    if not plain.results:
        return pulled_gradients
    others = [Value(param.type) for param in plain.params]
    apart = OptimizationBarrier(tuple(others)).results
    elsewhere = {"cuda": Function(others, plain.inline(apart, whole=True), plain.name)}
    if tiled is not None:
        x, flow = (Value(param.type) for param in plain.params)
        elsewhere["triton"] = Function([x, flow], (tiled(flow, x),), plain.name)

    def rule(cotangents: Sequence[Any], results: Sequence[Value], given: Sequence[Value]) -> list[Any]:
        starts = [None if ct is None else Value(ct.type) for ct in cotangents]
        second = gradients(plain.ops, plain.results, starts, plain.params)
        used = [each for each in starts if each is not None]
        arguments = [*given, *[ct for ct in cotangents if ct is not None]]
        second_order = iter(
            _function([*plain.params, *used], second, plain.name).inline(arguments, whole=True)
        )
        return [None if each is None else next(second_order) for each in second]

    pulled = iter(Composite((*values, cotangent), plain, rule, elsewhere, None).results)
    return [None if each is None else next(pulled) for each in pulled_gradients]


def _function(params: Sequence[Value], results: Sequence[Value | None], name: str) -> Function:
    return Function(params, [result for result in results if result is not None], name)


def derived(lowering: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of a lowering of several results that differentiates as its ops do."""

    def rule(cotangents: Any, results: Any, *arguments: Any) -> Any:
        values = [argument for argument in arguments if isinstance(argument, Value)]
        params: list[Any] = [Value(value.type) for value in values]
        remaining = iter(params)
        given = [next(remaining) if isinstance(argument, Value) else argument for argument in arguments]
        function = Function(params, lowering(*given))
        starts = [None if cotangent is None else Value(cotangent.type) for cotangent in cotangents]
        found = gradients(function.ops, function.results, starts, params)
        used = [start for start in starts if start is not None]
        whole = _function([*params, *used], found, function.name)
        flowing = [cotangent for cotangent in cotangents if cotangent is not None]
        made = iter(whole.inline([*values, *flowing], whole=True))
        return tuple([None if gradient is None else next(made) for gradient in found])

    return rule
