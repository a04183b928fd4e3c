"""Guards writes into donated memory: where a run-time check fails they do nothing, so no copy is kept to
restore it from.

A cache that a program writes a row of is updated where it lies. Giving it back unchanged after a failed check
would otherwise take a copy of all of it. Here the write itself knows the verdict: its place is then outside,
where a scatter writes nothing, or what it writes is what was there. So it is for a kernel of our own that
writes rows.

XLA for CPUs fuses such a write with each op that reads the cache, and with the result: every fusion writes a
copy of the cache. There a large write stands in a branch, which is not fused.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat.data_ops import DynamicUpdateSlice
from tenfold.flat.indexed import Scatter
from tenfold.flat.ir import Function, Op, Value, in_order, replay
from tenfold.flat.structured import Case, Check, CustomCall

Donations = Sequence[tuple[int, int]]

LARGE = 1 << 16  # bytes of memory whose copy takes longer than a branch


def idle_when_failing(
    function: Function, checks: Sequence[Check], donated: Donations, by_branches: bool = False
) -> tuple[Function, list[tuple[int, int]]]:
    """The program whose writes of a part of donated memory do nothing unless all checks hold; and what else
    is donated, of which that cannot be said. Large writes may stand in branches."""
    if not checks:
        return function, []
    before = set(in_order([check.holds for check in checks]))  # what decides about a write comes before it
    guarded: dict[Op, None] = {}
    others = []
    for place, result in donated:
        writes = _writes(function.results[result], function.params[place])
        if writes is None or not before.isdisjoint(writes):
            others.append((place, result))
        else:
            guarded.update(dict.fromkeys(writes))
    if not guarded:
        return function, others
    holds = functools.reduce(operator.and_, [check.holds for check in checks])
    values: dict[Value, Value] = {}
    for op in function.ops:
        if op in guarded:
            copy = op.replace(values)
            type = copy.results[0].type
            large = by_branches and type.numel * type.dtype.itemsize > LARGE
            written = _in_branch(copy, holds) if large else _idle(copy, holds)
            values.update(zip(op.results, written, strict=True))
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    return Function(
        function.params, [values.get(each, each) for each in function.results], function.name
    ), others


def _writes(result: Value, param: Value) -> list[Op] | None:
    """The writes of parts that lead from a parameter to a result; None if something else does."""
    writes: list[Op] = []
    while result is not param:
        op = result.op
        if isinstance(op, Check):
            result = op.x
            continue
        if isinstance(op, Scatter) and len(op.inputs) == 1:
            result = op.inputs[0]
        elif isinstance(op, DynamicUpdateSlice):
            result = op.x
        elif isinstance(op, CustomCall) and _rows_written(op):
            aliases = {op.results[out]: op.inputs[operand] for out, operand in op.aliases}
            if result not in aliases:
                return None
            result = aliases[result]
        else:
            return None
        writes.append(op)
    return writes


def _rows_written(op: CustomCall) -> list[int]:
    """The operands that number the rows which a call writes: see `ops/row_attention.py`."""
    options = {} if isinstance(op.backend_config, str) else dict(op.backend_config)
    writes: Any = options.get("writes", ())
    return [operand for _, operand, _ in writes]


def _idle(op: Op, holds: Value) -> tuple[Value, ...]:
    """What a write gives, or x itself where `holds` is false."""

    def inside(indices: Value) -> Value:
        outside = flat.full(indices.shape, _outside(indices), indices.dtype)
        return flat.where(holds, indices, outside)

    if isinstance(op, Scatter):
        return _with(op, scatter_indices=inside(op.scatter_indices))
    if isinstance(op, CustomCall):
        inputs = list(op.inputs)
        for place in _rows_written(op):
            inputs[place] = inside(inputs[place])
        return _with(op, inputs=tuple(inputs))
    assert isinstance(op, DynamicUpdateSlice)
    present = flat.dynamic_slice(op.x, op.starts, op.update.shape)
    return _with(op, update=flat.where(holds, op.update, present))


def _in_branch(op: Op, holds: Value) -> tuple[Value, ...]:
    """What a write gives, computed in a branch, or what was there where `holds` is false."""
    params = [Value(operand.type) for operand in op.operands]
    written = op.replace(dict(zip(op.operands, params, strict=True)))
    branches = (Function(params, [params[0]]), Function(params, list(written.results)))
    taken = Case(flat.convert(holds, dtypes.int32), tuple(op.operands), branches)
    taken.__dict__["source"] = op.source
    return taken.results


def _with(op: Op, **operands: Any) -> tuple[Value, ...]:
    """The results of the op with some of its operands replaced."""
    changed = type(op)(*[operands.get(field, op.__dict__[field]) for field in op.fields])
    changed.__dict__["source"] = op.source
    return changed.results


def _outside(indices: Value) -> int:
    """A place that no tensor has."""
    return -1 if indices.dtype.is_signed else (1 << 8 * indices.dtype.itemsize) - 1
