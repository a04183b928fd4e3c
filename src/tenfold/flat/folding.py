"""Builders with functions inside: reductions, scatters, sorts, loops, branches, powers; and checks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.flat import elementwise as e, structured as s
from tenfold.flat.build import (
    Number,
    Operand,
    add,
    axes,
    broadcast,
    constant,
    convert,
    ge,
    highest,
    logical_and,
    logical_or,
    logical_xor,
    lowest,
    maximum,
    minimum,
    mul,
    ne,
    shift_right_logical,
    where,
)
from tenfold.flat.data_builders import reshape
from tenfold.flat.indexed import Scatter, ScatterDimensions
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.windows import ReduceWindow


def function(build: Callable[..., Any], types: Sequence[TensorType], name: str = "") -> Function:
    """What `build` computes on parameters of these types."""
    params = [Value(type) for type in types]
    results = build(*params)
    return Function(params, results if isinstance(results, (tuple, list)) else (results,), name)


MONOIDS: dict[str, Callable[[Value, Value], Value]] = {
    "add": add,
    "mul": mul,
    "max": maximum,
    "min": minimum,
    "and": logical_and,
    "or": logical_or,
    "xor": logical_xor,
    "set": lambda old, new: new,
}


@functools.cache
def monoid(kind: str, dtype: DType) -> Function:
    """The body of a reduction or scatter, one object for each kind and dtype: `name` tells which."""
    scalar = TensorType(dtype, ())
    return function(MONOIDS[kind], (scalar, scalar), kind)


def identity(kind: str, dtype: DType) -> Number:
    if kind == "max":
        return lowest(dtype)
    if kind == "min":
        return highest(dtype)
    return {"add": 0, "mul": 1, "and": True if dtype.kind == "bool" else -1, "or": 0, "xor": 0}[kind]


def reduce(x: Value, kind: str, dims: int | Sequence[int] | None = None, keepdim: bool = False) -> Value:
    """Fold by a monoid: add, mul, max, min, and, or, xor. None, or (), means all dimensions."""
    dims = axes(dims, x.rank)
    if dims:
        init = constant(identity(kind, x.dtype), x.dtype)
        result = s.Reduce((x,), (init,), dims, monoid(kind, x.dtype)).result
    else:
        result = x
    return reshape(result, [1 if d in dims else n for d, n in enumerate(x.shape)]) if keepdim else result


def sum(x: Value, dims: int | Sequence[int] | None = None, keepdim: bool = False) -> Value:
    return reduce(x, "add", dims, keepdim)


def reduce_with(
    inputs: Sequence[Value], inits: Sequence[Number], dims: Sequence[int], body: Callable[..., Any]
) -> tuple[Value, ...]:
    """Fold several inputs together: `body(*accumulators, *elements)` gives the new accumulators."""
    starts = tuple([constant(init, x.dtype) for x, init in zip(inputs, inits, strict=True)])
    scalars = [TensorType(x.dtype, ()) for x in inputs]
    return s.Reduce(tuple(inputs), starts, tuple(dims), function(body, scalars * 2)).results


def reduce_window(
    x: Value,
    kind: str,
    window: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Sequence[tuple[int, int]] | None = None,
    dilation: Sequence[int] | None = None,
    base_dilation: Sequence[int] | None = None,
) -> Value:
    ones = (1,) * x.rank
    return ReduceWindow(
        (x,),
        (constant(identity(kind, x.dtype), x.dtype),),
        tuple(window),
        tuple(strides or ones),
        tuple(base_dilation or ones),
        tuple(dilation or ones),
        tuple(padding or ((0, 0),) * x.rank),
        monoid(kind, x.dtype),
    ).result


def sort(
    inputs: Sequence[Value], dim: int, comparator: Callable[..., Value], stable: bool = True
) -> tuple[Value, ...]:
    """Sort together; `comparator(left0, right0, left1, right1, ...)` says whether left goes before right."""
    pairs = [TensorType(x.dtype, ()) for x in inputs for _ in range(2)]
    return s.Sort(tuple(inputs), dim, stable, function(comparator, pairs)).results


def top_k(x: Value, k: int) -> tuple[Value, Value]:
    values, places = s.TopK(x, k).results
    return values, places


def while_loop(
    condition: Callable[..., Value], body: Callable[..., Any], carry: Sequence[Value]
) -> tuple[Value, ...]:
    types = [value.type for value in carry]
    return s.While(tuple(carry), function(condition, types), function(body, types)).results


def case(
    index: Value, branches: Sequence[Callable[..., Any]], arguments: Sequence[Value]
) -> tuple[Value, ...]:
    types = [argument.type for argument in arguments]
    functions = tuple([function(branch, types) for branch in branches])
    return s.Case(index, tuple(arguments), functions).results


def cond(
    predicate: Value, on_true: Callable[..., Any], on_false: Callable[..., Any], arguments: Sequence[Value]
) -> tuple[Value, ...]:
    return case(convert(predicate, dtypes.int32), (on_false, on_true), arguments)


def scatter(
    x: Value, indices: Value, updates: Value, numbers: ScatterDimensions, combine: str = "set"
) -> Value:
    """x with updates put in (`set`) or folded in by a monoid: add, mul, max, min."""
    body = monoid(combine, x.dtype)
    return Scatter((x,), indices, (updates,), numbers, False, False, body).result


def check(x: Value, holds: Value, error: type[Exception], message: str) -> Value:
    """x, but reading results of a program in which `holds` is not true everywhere raises."""
    if holds.rank:
        holds = reduce(holds, "and")
    return s.Check(x, holds, error, message).result


def power(x: Operand, y: Operand) -> Value:
    """x to the y. XLA reads six bits of an integer exponent: what is above is worked off by squaring."""
    small = isinstance(y, int) and y < 64
    x, y = broadcast(x, y)
    if x.dtype.kind != "int" or small:
        return e.Power(x, y).result
    large = ge(y, 64)
    result = e.Power(x, where(large, logical_and(y, 63), y)).result
    rest = where(large, shift_right_logical(y, 6), 0)
    base = x
    for _ in range(6):
        base = mul(base, base)

    def step(result: Value, base: Value, rest: Value) -> tuple[Value, ...]:
        odd = ne(logical_and(rest, 1), 0)
        return where(odd, mul(result, base), result), mul(base, base), shift_right_logical(rest, 1)

    unfinished = lambda result, base, rest: reduce(ne(rest, 0), "or")
    return while_loop(unfinished, step, (result, base, rest))[0]
