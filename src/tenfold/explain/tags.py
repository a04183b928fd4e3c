"""Provenance by op rather than by line: which Trace nodes each FlatIR op came from, and which FlatIR ops each
line of StableHLO and HLO came from.

Every compiler on the way carries a place along with each op: FlatIR its `source`, MLIR its location, XLA its
metadata. Here these places are not lines of the user's program but marks, numbers of nodes or ops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tenfold import flat
from tenfold.trace.collect import Trace
from tenfold.trace.graph import Node
from tenfold.trace.lower import lower

PREFIX = "tenfold-op-"  # of a mark that stands in the place of a file's name


class Mark(tuple[Any, int]):
    """Stands in the place of a Source: the numbers of Trace nodes, or of one FlatIR op."""

    __slots__ = ()
    line = 1
    columns = None
    text = ""

    @property
    def numbers(self) -> tuple[int, ...]:
        return self[0].numbers

    @property
    def filename(self) -> str:
        return f"{PREFIX}{self.numbers[0]}"

    short = filename

    def span(self) -> None:
        return None


class _Numbers:
    """What tells one mark from another by identity, as a code object does one Source from another."""

    def __init__(self, numbers: tuple[int, ...]):
        self.numbers = numbers


def mark(*numbers: int) -> Mark:
    return Mark((_Numbers(numbers), 0))


def lowered(trace: Trace) -> tuple[flat.Function, list[tuple[int, ...]]]:
    """The FlatIR of a program, and the nodes that each of its ops came from: one, or a node and the gradient
    that went back through it."""
    places = {node: i for i, node in enumerate(trace.nodes)}
    marks: dict[tuple[int, ...], Mark] = {}

    def place(node: Node, gradient: Node | None) -> Mark:
        numbers = (places[node],) if gradient is None else (places[node], places[gradient])
        return marks.setdefault(numbers, mark(*numbers))

    function = lower(trace, place=place)
    # Sums of cotangents, which no rule made, belong to the node whose result they are.
    origins = [op.source.numbers if isinstance(op.source, Mark) else _named(op) for op in function.ops]
    return function, _inherited(function, origins)


def _named(op: flat.Op) -> tuple[int, ...]:
    """The node whose result an op gives, by the name that `lower` gave to it: t12, or t12_0 of several."""
    names = [result.name for result in op.results if result.name and result.name.startswith("t")]
    return (int(names[0][1:].partition("_")[0]),) if names else ()


def _inherited(function: flat.Function, origins: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Ops without a place of their own, such as sums of cotangents, take that of their last operand."""
    known: dict[flat.Value, tuple[int, ...]] = {}
    for i, op in enumerate(function.ops):
        if not origins[i]:
            origins[i] = next((known[operand] for operand in reversed(op.operands) if known.get(operand)), ())
        known.update((result, origins[i]) for result in op.results)
    return origins


def numbered(function: flat.Function) -> flat.Function:
    """The same function, each op marked with its own number, and so are ops in its branches and loops."""
    numbers = iter(range(len(function.ops)))
    return _copied(function, lambda: mark(next(numbers)))


def _copied(function: flat.Function, next_mark: Callable[[], Mark]) -> flat.Function:
    params = [flat.Value(param.type) for param in function.params]
    values = dict(zip(function.params, params, strict=True))
    for op in function.ops:
        own = next_mark()
        copy = op.replace(values, own)
        for field in op.fields:
            copy.__dict__[field] = _inside(copy.__dict__[field], own)
        values.update(zip(op.results, copy.results, strict=True))
    return flat.Function(params, [values.get(result, result) for result in function.results], function.name)


def _inside(attribute: Any, own: Mark) -> Any:
    """An op's attribute; if it is a function, or several, with all its ops marked as the op itself is."""
    if isinstance(attribute, flat.Function):
        return _copied(attribute, lambda: own)
    if isinstance(attribute, tuple) and any(isinstance(each, flat.Function) for each in attribute):
        return tuple([_inside(each, own) for each in attribute])
    return attribute


@contextlib.contextmanager
def marked_nodes(trace: Trace) -> Iterator[None]:
    """A block in which each node of the program is marked with its number in the place of its source."""
    sources = [node.source for node in trace.nodes]
    try:
        for i, node in enumerate(trace.nodes):
            node.source = mark(i)
        yield
    finally:
        for node, source in zip(trace.nodes, sources, strict=True):
            node.source = source
