"""The rows of a cache that a program writes before it attends to the cache: which writes are of such rows,
and where in memory they come from. `ops/row_attention.py` has the kernel that does both."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tenfold.flat.data_ops import BroadcastInDim, Concatenate, Constant, Iota, Reshape, Slice, Transpose
from tenfold.flat.elementwise import Compare, Select
from tenfold.flat.indexed import Scatter
from tenfold.flat.ir import Value
from tenfold.flat.structured import Check


def run_of(value: Value) -> tuple[Value, int]:
    """What a value is a run of in memory, and where the run starts."""
    start = 0
    while True:
        op = value.op
        if isinstance(op, Slice):
            along = [d for d, size in enumerate(value.shape) if size != op.x.shape[d]]
            if len(along) != 1 or any(size > 1 for size in value.shape[: along[0]]) or max(op.strides) > 1:
                return value, start
            start += op.start_indices[along[0]] * math.prod(value.shape[along[0] + 1 :])
        elif isinstance(op, Transpose):
            moved = [d for d in op.permutation if op.x.shape[d] > 1]
            if moved != sorted(moved):
                return value, start
        elif isinstance(op, BroadcastInDim):
            if op.x.numel != value.numel or list(op.broadcast_dimensions) != sorted(op.broadcast_dimensions):
                return value, start
        elif not isinstance(op, Reshape):
            return value, start
        value = op.operands[0]


class Rows(NamedTuple):
    """The rows that a scatter writes, one of each matrix: their `numbers`, each for so many `heads`."""

    numbers: Value
    heads: int


def rows_written(op: Scatter) -> Rows | None:
    """The rows that a scatter writes, if it writes one of each matrix: the same of all, or the same of all
    that one number of the first dimension has."""
    cache, update, indices = op.inputs[0], op.updates[0], op.scatter_indices
    numbers, rank = op.scatter_dimension_numbers, cache.rank
    heads = math.prod(cache.shape[:-2])
    sets = len(op.inputs) == 1 and not op.body.ops and op.body.results == op.body.params[1:]
    if not sets or rank < 3 or update.numel * cache.shape[-2] != cache.numel:
        return None
    written = [size for size in update.shape if size > 1]
    if written != [size for d, size in enumerate(cache.shape) if d != rank - 2 and size > 1]:
        return None
    if numbers.input_batching_dims or update.shape[-1] != cache.shape[-1]:
        return None
    places = numbers.scatter_dims_to_operand_dims
    if places != numbers.inserted_window_dims:
        return None
    if places == (rank - 2,) and indices.numel == 1:
        return Rows(indices, heads)
    pair = indices.op
    if places != (0, rank - 2) or not isinstance(pair, Concatenate) or len(pair.inputs) != 2:
        return None
    if numbers.update_window_dims != tuple(range(update.rank - rank + 2, update.rank)):
        return None
    first, second = pair.inputs
    if pair.dimension != indices.rank - 1 or second.numel != cache.shape[0] or not _counts(first):
        return None
    return Rows(second, heads // cache.shape[0])


def _counts(value: Value) -> bool:
    """Whether the elements of a value are 0, 1, 2, … in order."""
    op = value.op
    if isinstance(op, Reshape | Check):
        return _counts(op.x)
    if isinstance(op, Select):  # an index that is moved up if it is negative, which none of these is
        below = op.predicate.op
        if not isinstance(below, Compare) or below.direction != "LT" or below.x is not op.on_false:
            return False
        return is_zero(below.y) and _counts(op.on_false)
    return isinstance(op, Iota) and value.shape[op.iota_dimension] == value.numel


def is_zero(value: Value) -> bool:
    op = value.op
    if isinstance(op, BroadcastInDim):
        return is_zero(op.x)
    return isinstance(op, Constant) and not np.any(op.value)
