"""Run-time checks inside branches, loops and code for one device, moved out of them: what a check found
leaves as one more result.

StableHLO has no word for a check: the emitter joins all conditions of a function into one more of its
results, and cannot reach into a region for them."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.base import dtypes
from tenfold.base.meshes import Sharding
from tenfold.flat.build import constant, eq, logical_and, ne, where
from tenfold.flat.collectives import ManualComputation, all_reduce, groups_along, manual_axes
from tenfold.flat.composite import Composite
from tenfold.flat.ir import Function, Op, Value
from tenfold.flat.structured import Case, Check, While

FAILED = dtypes.int32  # the number of a check


def hoisted(function: Function, device: str = "cpu") -> Function:
    """The function with no check inside its branches and loops; itself if there is none."""
    if not any(_inner(op) and _checked(op) for op in function.ops):
        return function
    values: dict[Value, Value] = {}
    for op in function.ops:
        copy = op.replace(values)
        results: Sequence[Value] = copy.results
        if isinstance(copy, Case) and _checked(op):
            results = _case(copy, device)
        elif isinstance(copy, While) and _checked(op):
            results = _while(copy, device)
        elif isinstance(copy, ManualComputation) and _checked(op):
            results = _manual(copy, device)
        for old, new in zip(op.results, results, strict=True):
            new.name = old.name
            values[old] = new
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _inner(op: Op) -> bool:
    return type(op) in (Case, While, ManualComputation)


def _functions(op: Op) -> tuple[Function, ...]:
    if isinstance(op, Case):
        return op.branches
    if isinstance(op, While):
        return (op.condition, op.body)
    if isinstance(op, ManualComputation):
        return (op.body,)
    return (op.body, *op.elsewhere.values()) if isinstance(op, Composite) else ()


def _checked(op: Op) -> bool:
    """Whether a check stands in a function inside the op, however deep."""
    return any(isinstance(each, Check) or _checked(each) for part in _functions(op) for each in part.ops)


def _split(function: Function, device: str) -> tuple[list[Check], list[Value], list[Value]]:
    """A function without its checks: these, their conditions, and its results without them."""
    plain = hoisted(function.expanded(device), device)
    values: dict[Value, Value] = {}
    checks: list[Check] = []
    for op in plain.ops:
        copy = op.replace(values)
        if isinstance(copy, Check):
            checks.append(copy)
            values[op.result] = copy.x
        else:
            values.update(zip(op.results, copy.results, strict=True))
    whole = Function(
        plain.params, [values.get(result, result) for result in plain.results] + [c.holds for c in checks]
    )
    results = whole.inline(function.params, whole=True)  # `plain` may have parameters of its own
    return checks, results[len(plain.results) :], results[: len(plain.results)]


def _case(op: Case, device: str) -> list[Value]:
    split = [_split(each, device) for each in op.branches]
    every = [(i, k) for i, (checks, _, _) in enumerate(split) for k in range(len(checks))]
    branches = []
    for i, (branch, (_, holds, results)) in enumerate(zip(op.branches, split, strict=True)):
        verdicts = [holds[k] if i == owner else constant(True, dtypes.bool_) for owner, k in every]
        branches.append(Function(branch.params, [*results, *verdicts], branch.name))
    rebuilt = _sourced(Case(op.index, op.arguments, tuple(branches)), op)
    count = len(op.results)
    return _checking(rebuilt[:count], [split[i][0][k] for i, k in every], rebuilt[count:])


def _while(op: While, device: str) -> list[Value]:
    """The number of the first check that failed is carried, 0 if none did: then the loop ends, as what it
    goes on with might never end it.

    A condition gives nothing but its answer. Where it has checks it is asked before the loop and at the end
    of each round, and its answer is carried, too."""
    checks, holds, results = _split(op.body, device)
    asked, verdicts, answer = _split(op.condition, device)
    start = constant(0, FAILED)
    flag, last_flag = Value(start.type), Value(start.type)
    last = [Value(value.type) for value in op.carry]
    if asked:
        ask = Function(op.condition.params, [*verdicts, *answer])
        *first, go = ask.inline(op.carry, whole=True)
        *again, go_on = ask.inline(results, whole=True)
        start, holds = _first_failed(first, len(checks)), [*holds, *again]
        carry, body_params, results = (*op.carry, go), [*op.body.params, Value(go.type)], [*results, go_on]
        goes = Value(go.type)
        last.append(goes)
    else:
        carry, body_params = op.carry, list(op.body.params)
        (goes,) = Function(op.condition.params, answer).inline(last, whole=True)
    goes = logical_and(goes, eq(last_flag, 0))
    body = Function([*body_params, flag], [*results, _first_failed(holds)], op.body.name)
    rebuilt = _sourced(
        While((*carry, start), Function([*last, last_flag], [goes], op.condition.name), body), op
    )
    held = [ne(rebuilt[-1], i + 1) for i in range(len(checks) + len(asked))]
    return _checking(rebuilt[: len(op.carry)], [*checks, *asked], held)


def _first_failed(holds: Sequence[Value], before: int = 0) -> Value:
    """The number of the first of these that does not hold, counted from 1 after those `before`; or 0."""
    failed = constant(0, FAILED)
    for i in range(len(holds), 0, -1):
        failed = where(holds[i - 1], failed, constant(before + i, FAILED))
    return failed


def _manual(op: ManualComputation, device: str) -> list[Value]:
    """A check holds where it holds on every device."""
    checks, holds, results = _split(op.body, device)
    placed = (*op.in_shardings, *op.out_shardings)[0]
    names = manual_axes(op)
    verdicts = [all_reduce(value, "and", groups_along(placed.mesh.axes, names)) for value in holds]
    body = Function(op.body.params, [*results, *verdicts], op.body.name)
    verdict = Sharding(placed.mesh, (), None if placed.whole is None else tuple(names))
    out = (*op.out_shardings, *[verdict for _ in holds])
    rebuilt = _sourced(ManualComputation(op.inputs, body, op.in_shardings, out), op)
    return _checking(rebuilt[: len(op.results)], checks, rebuilt[len(op.results) :])


def _sourced(op: Op, like: Op) -> tuple[Value, ...]:
    op.__dict__["source"] = like.source
    return op.results


def _checking(results: Sequence[Value], checks: Sequence[Check], holds: Sequence[Value]) -> list[Value]:
    """The results, each behind all of the checks."""
    checked = list(results)
    for check, held in zip(checks, holds, strict=True):
        for i, each in enumerate(checked):
            made = Check(each, held, check.error, check.message)
            made.__dict__["source"] = check.source
            checked[i] = made.result
    return checked
