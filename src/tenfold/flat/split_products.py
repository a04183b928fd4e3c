"""Splits a large product of which only parts of the columns are used, as a model's queries, keys and values:
on a GPU the whole would be written, and each part copied out of it."""

from __future__ import annotations

import itertools

from tenfold import flat
from tenfold.flat.data_ops import BroadcastInDim, Reshape, Slice
from tenfold.flat.elementwise import Add, Convert
from tenfold.flat.ir import Function, Op, Value, give_source, replay
from tenfold.flat.structured import DotGeneral

LARGE = 1 << 22  # elements of a product whose copy takes longer than a further product starts
NARROWEST = 256  # columns of a part, which keep a GPU as busy as more do


def products_apart(function: Function) -> Function:
    """The same program, with a product for each part that is used of one."""
    users: dict[Value, list[Op]] = {}
    for op in function.ops:
        for operand in op.operands:
            users.setdefault(operand, []).append(op)
    used = set(function.results)
    parts: set[Op] = set()
    for value, ops in users.items():
        if value not in used and value.numel >= LARGE and _are_parts(ops) and _is_product(value, users, used):
            parts.update(ops)
    if not parts:
        return function
    values: dict[Value, Value] = {}
    known = set(function.ops)
    for op in function.ops:
        if op in parts:
            assert isinstance(op, Slice)
            values[op.result] = _columns(op.x, op.start_indices[-1], op.limit_indices[-1], values)
            give_source([values[op.result]], op.source, known)
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _are_parts(ops: list[Op]) -> bool:
    """Whether these take columns of a value, each column once at most."""
    spans = []
    for op in ops:
        if not isinstance(op, Slice) or op.result.shape[:-1] != op.x.shape[:-1] or max(op.strides) > 1:
            return False
        spans.append((op.start_indices[-1], op.limit_indices[-1]))
    spans.sort()
    apart = all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
    return len(spans) > 1 and apart and all(stop - start >= NARROWEST for start, stop in spans)


def _is_product(value: Value, users: dict[Value, list[Op]], used: set[Value]) -> bool:
    """Whether a value is a product, reshaped, converted or with a vector added; and nothing between is used
    otherwise."""
    while True:
        op = value.op
        if isinstance(op, DotGeneral):
            numbers = op.dot_dimension_numbers
            is_of_matrix = op.y.rank == 2 and not numbers.lhs_batching_dimensions
            return is_of_matrix and len(numbers.rhs_contracting_dimensions) == 1
        passes = (
            isinstance(op, Convert)
            or (isinstance(op, Add) and _is_of_columns(op.y))
            or (isinstance(op, Reshape) and op.x.shape[-1:] == op.shape[-1:])
        )
        if op is None or not passes:
            return False
        value = op.operands[0]
        if len(users[value]) > 1 or value in used:
            return False


def _is_of_columns(value: Value) -> bool:
    """Whether a value is the same in every row."""
    op = value.op
    if isinstance(op, Convert):
        return _is_of_columns(op.x)
    return isinstance(op, BroadcastInDim) and op.broadcast_dimensions in ((), (len(op.shape) - 1,))


def _columns(value: Value, start: int, stop: int, values: dict[Value, Value]) -> Value:
    """The columns from `start` to `stop` of a product or of what follows from it; `values` has what became of
    other values."""
    op = value.op
    if isinstance(op, DotGeneral):
        numbers = op.dot_dimension_numbers
        x, y = (values.get(each, each) for each in (op.x, op.y))
        y = flat.slice_dim(y, 1 - numbers.rhs_contracting_dimensions[0], start, stop)
        return DotGeneral(x, y, numbers, op.dtype).result
    if isinstance(op, Add):
        return _columns(op.x, start, stop, values) + _columns(op.y, start, stop, values)
    if isinstance(op, Convert):
        return flat.convert(_columns(op.x, start, stop, values), op.dtype)
    if isinstance(op, Reshape):
        part = _columns(op.x, start, stop, values)
        return flat.reshape(part, (*op.shape[:-1], stop - start))
    assert isinstance(op, BroadcastInDim)
    source = values.get(op.x, op.x)
    if source.rank and source.shape[0] > 1:
        source = flat.slice_dim(source, 0, start, stop)
    return BroadcastInDim(source, (*op.shape[:-1], stop - start), op.broadcast_dimensions).result
