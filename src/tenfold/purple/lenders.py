"""Functions that lend their results: `(first xs)` gives what the list goes on holding, and no share of it.

Such a function calls primitives and other such functions alone, and whatever it returns is a constant or a
part of one parameter that it borrows. (Who takes a share of the parameter itself shares the whole of it.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tenfold.purple import effects, ir
from tenfold.purple.ir import Atom, Block, Constant, Function, Let, Variable

Lent: TypeAlias = dict[int, set[Variable]]
Part: TypeAlias = tuple[int, frozenset[str]]
ELSEWHERE = -1  # stands for a holder that is no parameter


def find_lenders(module: ir.Module, lendable: Callable[[Function], set[Variable]], lent: Lent) -> None:
    """Mark the functions that lend their results, and note in `lent` which variables are lent to their
    callers then. `lendable` gives those of one function."""
    functions = [*module.functions, module.main]
    refused = {id(f) for f in functions if f.escapes or f.bounces or f.has_hole or f.rep != ir.VALUE}
    refused.add(id(module.main))
    for function in functions:
        for statement in function.statements():
            match statement:
                case ir.LetTry():
                    refused.add(id(statement.function))
                case Let(op=ir.CallWithin() as op):
                    refused.add(id(op.function))
    number = max((var.number for f in functions for var in _variables(f)), default=0)
    waiting = functions
    while waiting:
        lenders = set()
        for function in waiting:
            if function.lends is None and id(function) not in refused:
                function.lends = _lends(function, lent[id(function)])
                if function.lends is not None:
                    lenders.add(id(function))
        waiting = [function for function in functions if lenders and _calls(function, lenders)]
        for function in waiting:
            number = _plain_calls(function, function.body, number)
            lent[id(function)] = lendable(function)


def _calls(function: Function, lenders: set[int]) -> bool:
    called = map(effects.passes, function.statements())
    return any(each is not None and id(each[0]) in lenders for each in called)


def _variables(function: Function) -> list[Variable]:
    return function.all_params + [s.var for s in function.statements() if isinstance(s, Let)]


def _lends(function: Function, lent: set[Variable]) -> Part | None:
    """Which parameter a function lends its result from, and by containers of which kinds."""
    returned: list[Atom] = []
    paths: dict[Variable, set[Part]] = {
        param: {(i, effects.NOTHING)} for i, param in enumerate(function.all_params) if param.borrowed
    }
    for statement in function.statements():
        match statement:
            case Let(op=ir.Prim(name="apply" | "%apply-tail") | ir.CallClosure() | ir.Foreign()):
                return None
            case Let(op=ir.CallKnown() as op) if op.function.lends is None:
                return None
            case ir.LetTry() | ir.TailCall() | ir.TailClosure() | Let(op=ir.CallWithin()):
                return None
            case ir.Return():
                returned.append(statement.value)
    _follow(function, lent, paths)
    found: set[Part] = set()
    for value in returned:
        if isinstance(value, Constant) or value.type in ir.UNMANAGED:
            continue
        if value not in paths or not (value in lent or value.borrowed):
            return None
        found |= paths[value]
    lenders = {index for index, _ in found}
    if len(lenders) != 1 or ELSEWHERE in lenders or not all(kinds for _, kinds in found):
        return None
    return lenders.pop(), effects.NOTHING.union(*(kinds for _, kinds in found))


def _follow(function: Function, lent: set[Variable], paths: dict[Variable, set[Part]]) -> None:
    """Add by variable the parameters that it looks into, and ELSEWHERE where it looks into a global or a
    constant."""
    changed = True
    while changed:
        changed = False
        for statement in function.statements():
            if not isinstance(statement, Let) or not (statement.var in lent or statement.var.borrowed):
                continue
            part = (
                (0, effects.NOTHING)
                if isinstance(statement.op, ir.Copy)
                else effects.looks_into(statement.op)
            )
            source = statement.op.args[part[0]] if part is not None else None
            if part is None or isinstance(source, Constant):
                more: set[Part] = {(ELSEWHERE, effects.NOTHING)}
            else:
                assert isinstance(source, Variable)
                more = {(index, kinds | part[1]) for index, kinds in paths.get(source, ())}
            known = paths.setdefault(statement.var, set())
            changed |= not more <= known
            known |= more


def _plain_calls(function: Function, block: Block, number: int) -> int:
    """Make calls in tail position of functions that lend their results plain ones: they call nobody."""
    for i in range(len(block) - 1, -1, -1):
        each = block[i]
        match each:
            case ir.If():
                number = _plain_calls(function, each.then, number)
                number = _plain_calls(function, each.otherwise, number)
            case ir.Loop():
                number = _plain_calls(function, each.body, number)
            case ir.TailCall(function=callee) if callee.lends is not None:
                number += 1
                result = Variable("result", number, each.place)
                result.type = callee.result
                call = Let(result, ir.CallKnown(each.args, callee), each.place)
                block[i : i + 1] = [call, ir.Return(result)]
                function.changed()
    return number
