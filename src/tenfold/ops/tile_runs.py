"""Kernels of our own that read runs of a program's parameters in place: XLA would copy each slice first."""

from __future__ import annotations

from typing import Any

from tenfold.flat.ir import Function, Value, replay
from tenfold.flat.structured import CustomCall
from tenfold.ops.cache_rows import run_of
from tenfold.ops.tile_kernels import TARGET


def read_in_place(function: Function) -> Function:
    """The same program with no slices between its parameters and its kernels."""
    params = set(function.params)
    values: dict[Value, Value] = {}
    for op in function.ops:
        if isinstance(op, CustomCall) and op.call_target_name.startswith(TARGET):
            moved = _starting_later(op, params)
            if moved is not None:
                copy = moved.replace(values)
                values.update(zip(op.results, copy.results, strict=True))
                continue
        if any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _starting_later(op: CustomCall, params: set[Value]) -> Any:
    """The call with parameters in place of the runs of them that it takes; None if it takes none."""
    assert not isinstance(op.backend_config, str)
    options: dict[str, Any] = dict(op.backend_config)
    shared = {operand for _, operand in op.aliases}
    inputs, starts = list(op.inputs), dict(options.pop("starts", ()))
    for i, operand in enumerate(op.inputs):
        whole, start = run_of(operand)
        if whole is not operand and whole in params and i not in shared:
            inputs[i] = whole
            starts[i] = starts.get(i, 0) + start
    if inputs == list(op.inputs):
        return None
    config = (*options.items(), ("starts", tuple(starts.items())))
    moved = CustomCall(tuple(inputs), op.call_target_name, op.result_types, config, op.aliases, op.by_columns)
    moved.__dict__["source"] = op.source
    return moved
