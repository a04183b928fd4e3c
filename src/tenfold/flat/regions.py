"""Passes over a program, applied to its branches and to the bodies of its loops as well."""

from __future__ import annotations

from collections.abc import Callable

from tenfold.flat.ir import Function, Value
from tenfold.flat.structured import Case, While

Pass = Callable[[Function], Function]


def everywhere(function: Function, change: Pass, device: str) -> Function:
    """The program after a pass over it and over all functions in it, the innermost first. Inside, composites
    take their bodies for `device`, as they have already outside."""
    if not any(isinstance(op, While | Case) for op in function.ops):
        return change(function)

    def inside(region: Function) -> Function:
        return everywhere(region.expanded(device), change, device)

    values: dict[Value, Value] = {}
    for op in function.ops:
        copy = op.replace(values) if any(operand in values for operand in op.operands) else op
        changed = copy
        if isinstance(copy, While):
            changed = While(copy.carry, inside(copy.condition), inside(copy.body))
        elif isinstance(copy, Case):
            changed = Case(copy.index, copy.arguments, tuple([inside(branch) for branch in copy.branches]))
        if changed is not op:
            changed.__dict__["source"] = op.source
            values.update(zip(op.results, changed.results, strict=True))
    results = [values.get(result, result) for result in function.results]
    return change(Function(function.params, results, function.name))
