"""Results whose size depends on data, recorded inside a compiled function, where their size stays open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.base.errors import TenfoldError
from tenfold.ops.callee import Program, programs
from tenfold.ops.table import Row
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.counts import Counts
from tenfold.trace.graph import Value


def counts() -> Counts | None:
    """What turns sizes that depend on data into numbers. None where such sizes can be computed, or are
    refused."""
    return None if context.recorder is None else context.recorder.policy.counts


def _tensors(values: Sequence[Any]) -> list[Value]:
    return [value for value in values if type(value) is Value]


def call(row: Row, values: Sequence[Any], counts: Counts, where: Any) -> Sequence[Value]:
    """Record a row whose results' size depends on data."""
    sized = row.sized
    assert sized is not None
    tensors = _tensors(values)
    key = (row.qualified, *[value.type if type(value) is Value else value for value in values])

    def lowered(size: int) -> Program:
        params, arguments = _abstract(values)
        results, count = sized.lowering(size, *row.bind_values(arguments))
        return Program(flat.Function(params, [*results, count], row.name))

    def record(size: int) -> tuple[Sequence[Value], Value]:
        program = programs.get((*key, size), lambda: lowered(size))
        *results, count = graph.call_program(program, tensors, where, tensors[0].device)
        return results, count

    try:
        _, arguments = _abstract(values)
        bound = None if sized.bound is None else sized.bound(*row.bind_values(arguments))
        return counts.take(key, tensors, bound, record, (_told(row, where), where))
    except TenfoldError as error:
        raise graph.located(error, row, where, list(values)) from None


def _told(row: Row, where: Any) -> str:
    """The user's code that has such a size, as `x[mask]`; without the source, the name of the op."""
    span = None if where is None else where.span()
    return row.python_name.removesuffix("_numpy") if span is None else where.text[slice(*span)]


def _abstract(values: Sequence[Any]) -> tuple[list[flat.Value], list[Any]]:
    """Parameters of FlatIR in the places of tensors."""
    arguments = [flat.Value(value.type) if type(value) is Value else value for value in values]
    return [argument for argument in arguments if isinstance(argument, flat.Value)], arguments


def as_size(number: Value, counts: Counts, where: Any) -> int:
    """A whole number that a tensor holds, to be a size."""
    return counts.take(("number",), [number], None, lambda size: (size, number), ("the number", where))
