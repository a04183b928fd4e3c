"""Which arguments and results are dimensions or positions, which R counts from 1."""

from __future__ import annotations

import functools
from typing import NamedTuple

from tenfold.ops.schema import Argument, Schema
from tenfold.ops.table import TABLE, Row

__all__ = ["counts_from_one", "result_places"]

# Arguments that are positions wherever they occur: whole numbers, and tensors of them.
_NUMBERS = {
    "dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "axis", "axis0", "axis1", "source",
    "destination", "dims_self", "dims_other", "index", "start", "ignore_index", "padding_idx",
    "dimension",
}  # fmt: skip
_TENSORS = {"index", "indices"}


class Stated(NamedTuple):
    """A row's fact `positions`, read."""

    arguments: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    results: tuple[int, ...] | None = None


def counts_from_one(schema: Schema, argument: Argument) -> bool:
    """Whether an argument is a dimension or a position, or a tensor of positions."""
    stated, kind = _stated(schema.qualified), argument.type.kind
    if kind not in ("int", "Tensor") or argument.name in stated.others:
        return False
    by_name = _NUMBERS if kind == "int" else _TENSORS
    return argument.name in by_name or argument.name in stated.arguments


def result_places(schema: Schema) -> tuple[int, ...]:
    """Which results are tensors of positions."""
    stated = _stated(schema.qualified)
    if stated.results is not None:
        return stated.results
    return tuple(i for i, each in enumerate(schema.returns) if each.name == "indices")


def _stated(qualified: str) -> Stated:
    row = _row(qualified)
    return _read(row.positions) if row is not None and row.positions else Stated()


def _row(qualified: str) -> Row | None:
    """The row of an overload; of `add_.Tensor` that of `add.Tensor`."""
    name, _, overload = qualified.partition(".")
    rows = TABLE.get(name) or TABLE.get(name.removesuffix("_"), [])
    return next((row for row in rows if row.overload == overload), None)


@functools.cache
def _read(positions: str) -> Stated:
    arguments, arrow, results = positions.partition("->")
    counted, _, others = f" {arguments} ".partition(" not ")
    return Stated(
        frozenset(counted.split()),
        frozenset(others.split()),
        tuple(map(int, results.split())) if arrow else None,
    )
