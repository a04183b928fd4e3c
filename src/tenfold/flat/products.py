"""Finds the matrix products and convolutions in a FlatIR function, with their sizes and how often each runs.
`FlopCounterMode` counts floating-point operations from these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from tenfold.base.warning import warn
from tenfold.flat.composite import Composite
from tenfold.flat.grad_control import known_trip_count
from tenfold.flat.ir import Function, Op, Value
from tenfold.flat.structured import Case, DotGeneral, While
from tenfold.flat.windows import Convolution

Shape = tuple[int, ...]


class Product(NamedTuple):
    """One product that runs `times` times. Of matrices, `x` is (…, m, k) and `y` (…, k, n), with one batch
    dimension if there are any. `from_x` and `from_y` tell the function's parameters that each operand is
    computed from, as the bits of a number."""

    is_convolution: bool
    x: Shape
    y: Shape
    out: Shape
    from_x: int
    from_y: int
    times: int


def products(function: Function) -> list[Product]:
    """The products of a function, those inside of loops, branches and composites among them."""
    return list(_products(function, [1 << i for i in range(len(function.params))], 1)[0])


def _products(function: Function, given: Sequence[int], times: int) -> tuple[list[Product], list[int]]:
    """The products, and what parameters of the outermost function each result is computed from."""
    sources: dict[Value, int] = dict(zip(function.params, given, strict=True))
    found: list[Product] = []
    for op in function.ops:
        operands = [sources.get(operand, 0) for operand in op.operands]
        inner = _INNER.get(type(op))
        if inner is not None:
            more, results = inner(op, operands, times)
            found += more
        else:
            found += _own(op, operands, times)
            every = 0
            for source in operands:
                every |= source
            results = [every] * len(op.results)
        sources.update(zip(op.results, results, strict=True))
    return found, [sources.get(result, 0) for result in function.results]


def _own(op: Op, sources: Sequence[int], times: int) -> Iterator[Product]:
    if isinstance(op, DotGeneral):
        numbers = op.dot_dimension_numbers
        batch = prod([op.x.shape[d] for d in numbers.lhs_batching_dimensions])
        inner = prod([op.x.shape[d] for d in numbers.lhs_contracting_dimensions])
        left = (batch,) if numbers.lhs_batching_dimensions else ()
        rows, columns = (
            prod([extent for d, extent in enumerate(each.shape) if d not in taken])
            for each, taken in (
                (op.x, (*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions)),
                (op.y, (*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions)),
            )
        )
        shapes = (*left, rows, inner), (*left, inner, columns), (*left, rows, columns)
        yield Product(False, *shapes, sources[0], sources[1], times)
    elif isinstance(op, Convolution):
        names = op.dimension_numbers
        x, kernel, out = op.x.shape, op.kernel.shape, op.result.shape
        shapes = (
            _arranged(x, names.input_batch_dimension, names.input_feature_dimension,
                      names.input_spatial_dimensions),
            _arranged(kernel, names.kernel_output_feature_dimension, names.kernel_input_feature_dimension,
                      names.kernel_spatial_dimensions),
            _arranged(out, names.output_batch_dimension, names.output_feature_dimension,
                      names.output_spatial_dimensions),
        )  # fmt: skip
        yield Product(True, *shapes, sources[0], sources[1], times)


def _arranged(shape: Shape, first: int, second: int, others: Sequence[int]) -> Shape:
    return (shape[first], shape[second], *[shape[d] for d in others])


def _of_composite(op: Composite, sources: Sequence[int], times: int) -> tuple[list[Product], list[int]]:
    return _products(op.body, sources, times)


def _of_while(op: While, sources: Sequence[int], times: int) -> tuple[list[Product], list[int]]:
    carried = list(sources)
    for _ in carried:  # what one round computes from a value, the next one may hand on
        after = _products(op.body, carried, 1)[1]
        joined = [before | each for before, each in zip(carried, after, strict=True)]
        if joined == carried:
            break
        carried = joined
    rounds = known_trip_count(op)
    if rounds is None:
        warn("a loop that may end after any number of rounds is counted as one round")
        rounds = 1
    return _products(op.body, carried, times * rounds)[0], carried


def _of_case(op: Case, sources: Sequence[int], times: int) -> tuple[list[Product], list[int]]:
    """The branch with most work stands for all: the number is an upper bound."""
    branches = [_products(branch, sources[1:], times) for branch in op.branches]
    results = [0] * len(op.results)
    for _, reached in branches:
        results = [before | each for before, each in zip(results, reached, strict=True)]
    return max((found for found, _ in branches), key=work), results


def work(found: Sequence[Product]) -> int:
    """How many numbers products multiply in all."""
    return sum([prod(each.out) * each.y[-2] * each.times for each in found if not each.is_convolution]) + sum(
        [prod(each.out) * prod(each.y[1:]) * each.times for each in found if each.is_convolution]
    )


_INNER: dict[type, Callable[..., tuple[list[Product], list[int]]]] = {
    Composite: _of_composite,
    While: _of_while,
    Case: _of_case,
}
