"""The certifier's look at what is said to have one owner: in its function no such variable is shared, none of
its definitions gives what something else is known to hold, and no weak field leads to it.

It follows calls only to see what comes into weak fields. That what a function is given, or gives, has one
owner is checked where programs run under test, by the counts themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tenfold.purple import effects, ir
from tenfold.purple.ir import Constant, Function, Let, Variable

# How far from a variable what comes into a weak field is: its value, a rest of that list, or any part.
SELF, REST, PART = range(3)
GIVES_REST = ("cdr", "cddr", "list-tail", "drop")
Watched: TypeAlias = dict[Variable, int]


def watched(module: ir.Module) -> Watched:
    """The variables that only look at a value a weak field may lead to, or at a list of which it leads to a
    part: how far that part is."""
    found: Watched = {}
    functions = [(each, ir.statements(each.body)) for each in [*module.functions, module.main]]
    changed = True
    while changed:
        before = dict(found)
        for _, body in functions:
            _look_back(body, found)
        changed = found != before
    return found


def _look_back(body: list[ir.Statement], found: Watched) -> None:
    """Follow one function from its weak fields back to what it looks at."""
    for each in reversed(body):
        if isinstance(each, Let):
            for arg in effects.watched(each.op):
                _note(arg, SELF, found)
            is_lent = each.var.lender is not None or each.var.borrowed
            if is_lent and each.var in found and each.op.args:
                _look_into(each.op, found[each.var], found)
        called = effects.passes(each)
        for param, arg in zip(called[0].all_params, called[1]) if called is not None else ():
            if param.borrowed and param in found:
                _note(arg, found[param], found)


def _look_into(op: ir.Op, distance: int, found: Watched) -> None:
    """What a lent variable is, or is a part of."""
    if isinstance(op, ir.Copy):
        _note(op.args[0], distance, found)
    elif isinstance(op, ir.Prim) and effects.gives_part(op) == "pair":
        _note(op.args[0], max(distance, REST if op.name in GIVES_REST else PART), found)


def _note(atom: ir.Atom, distance: int, found: Watched) -> None:
    if isinstance(atom, Variable):
        found[atom] = min(distance, found.get(atom, PART))


def replaced(module: ir.Module) -> frozenset[str]:
    """The parts of pairs, `car` and `cdr`, in whose place the program may put what something else holds. In
    a replaced rest elements are such, too."""
    found: set[str] = set()
    for function in [*module.functions, module.main]:
        for each in ir.statements(function.body):
            if isinstance(each, Let) and isinstance(each.op, ir.Prim | ir.PrimClosure):
                found |= {"set-car!": {"car"}, "set-cdr!": {"car", "cdr"}}.get(each.op.name, set())
    return frozenset(found)


class Claims:
    """A program whose claims are looked at."""

    def __init__(self, module: ir.Module):
        self.watched, self.replaced = watched(module), replaced(module)

    def refuted(self, function: Function) -> Iterator[tuple[ir.Statement, str]]:
        """The statements that release something as its only owner wrongly, and why."""
        definitions, shared = _definitions(function)
        for each in ir.statements(function.body):
            claimed = _claimed(each)
            if claimed is None:
                continue
            names = _names(claimed, definitions)
            for var in names:
                if var in shared:
                    yield each, f"{var.name} is shared, but released as if it had one owner"
                if self.watched.get(var) == SELF:
                    yield each, f"{WEAKLY_HELD} {var.name}, which is released as if it had one owner"
                for op in definitions.get(var, ()):
                    why = self.doubt(op)
                    if why:
                        yield each, f"{why} {var.name}, which is released as if it had one owner"

    def doubt(self, op: ir.Op) -> str:
        """What else may hold what an operation gives."""
        if _is_watched(op, self.watched):
            return WEAKLY_HELD
        if isinstance(op, ir.Take) and op.part in self.replaced:
            return f"a {op.part} that was replaced may be"
        return "something else holds" if _is_held(op) else ""


WEAKLY_HELD = "a weak field may lead to"


def _definitions(function: Function) -> tuple[dict[Variable, list[ir.Op]], set[Variable]]:
    """What defines each variable of a function, and those of which it gives shares."""
    found: dict[Variable, list[ir.Op]] = {}
    shared: set[Variable] = set()
    for each in ir.statements(function.body):
        match each:
            case Let():
                found.setdefault(each.var, []).append(each.op)
            case ir.LetTry():
                found.setdefault(each.var, []).append(ir.Share([]))
            case ir.Uncons():
                found.setdefault(each.car, []).append(ir.Take([each.pair], "car"))
                found.setdefault(each.cdr, []).append(ir.Take([each.pair], "cdr"))
            case ir.Dup():
                shared.add(each.var)
    return found, shared


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


def _is_watched(op: ir.Op, watched: Watched) -> bool:
    """Whether an operation takes a part of a list that a weak field may lead to."""
    if not isinstance(op, ir.Take) or not isinstance(op.args[0], Variable):
        return False
    return watched.get(op.args[0], PART + 1) <= (REST if op.part == "cdr" else PART)


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
