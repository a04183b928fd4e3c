"""The certifier's look at what is said to have one owner: in its function no such variable is shared, and
none of its definitions gives what something else is known to hold.

It follows no calls: that what a function is given, or gives, has one owner is checked where programs run
under test, by the counts themselves."""

from __future__ import annotations

from collections.abc import Iterator

from tenfold.purple import effects, ir
from tenfold.purple.ir import Constant, Function, Let, Variable


def refuted(function: Function) -> Iterator[tuple[ir.Statement, str]]:
    """The statements that release something as its only owner wrongly, and why."""
    body = ir.statements(function.body)
    definitions: dict[Variable, list[ir.Op]] = {}
    shared: set[Variable] = set()
    for each in body:
        match each:
            case Let():
                definitions.setdefault(each.var, []).append(each.op)
            case ir.LetTry():
                definitions.setdefault(each.var, []).append(ir.Share([]))
            case ir.Dup():
                shared.add(each.var)
    for each in body:
        claimed = _claimed(each)
        if claimed is None:
            continue
        names = _names(claimed, definitions)
        for var in names & shared:
            yield each, f"{var.name} is shared, but released as if it had one owner"
        for var in names:
            if any(_is_held(op) for op in definitions.get(var, ())):
                yield each, f"something else holds {var.name}, which is released as if it had one owner"


def _claimed(each: ir.Statement) -> Variable | None:
    """The variable that a statement releases as its only owner."""
    match each:
        case ir.Drop() if each.unique:
            return each.var
        case ir.Uncons(unique=True):
            return each.pair
        case Let(op=ir.Take(unique=True) | ir.Reverse(unique=True) as op):
            return op.args[0] if isinstance(op.args[0], Variable) else None
    return None


def _names(var: Variable, definitions: dict[Variable, list[ir.Op]]) -> set[Variable]:
    """A variable and those whose value it may have taken over."""
    found, work = {var}, [var]
    while work:
        for op in definitions.get(work.pop(), ()):
            source = op.args[0] if isinstance(op, ir.Copy) else None
            if isinstance(source, Variable) and source.is_managed and source not in found:
                found.add(source)
                work.append(source)
    return found


def _is_held(op: ir.Op) -> bool:
    """Whether something else goes on holding what an operation gives."""
    match op:
        case ir.Share() | ir.LoadGlobal() | ir.Foreign() | ir.CallClosure() | ir.PrimClosure():
            return True
        case ir.Copy(args=[Constant(value=value)]):
            return not ir.is_immediate(value)
        case ir.CallKnown():
            return op.function.lends is not None
    return bool(effects.gives_part(op))
