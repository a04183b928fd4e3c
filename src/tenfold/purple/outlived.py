"""Parameters that may hold tensors and are needed no more when a function makes others: unless the function
owns them, they add to the peak of memory."""

from __future__ import annotations

from tenfold.purple import effects, ir
from tenfold.purple.ir import Atom, Function, Let, Variable
from tenfold.purple.liveness import live_after_calls
from tenfold.purple.usage import is_about_tensors

# Types through which no tensor can be held.
WITHOUT_TENSORS = ("int", "integer", "float", "number", "string", "symbol", "keyword", "char", "bool")


def outlived(function: Function, makers: set[int]) -> set[Variable]:
    """The parameters, which may hold tensors, that the function needs no more when it makes a tensor."""
    params = {param for param in function.params if param.type not in WITHOUT_TENSORS}
    names = names_of_params(function, params)
    needed = function.once(live_after_calls)
    found: set[Variable] = set()
    for statement in function.statements():
        if _makes_tensor(statement, makers):
            in_use = needed[id(statement)] | set(_operands(statement))
            found |= params - {param for var in in_use for param in names.get(var, ())}
    return found


def _operands(each: ir.Statement) -> list[Atom]:
    match each:
        case Let():
            return each.op.args
        case ir.LetTry() | ir.TailCall() | ir.TailClosure():
            return each.args
    return []


def walked(function: Function) -> set[Variable]:
    """The variables that may be tensors, or collections of them: all but those of which only fields are
    looked at, and procedures that are called."""
    found = {param for param in function.all_params if param.type in ("tensor", "list", "pair", "vector")}
    for statement in function.statements():
        used: list[Atom] = []
        match statement:
            case Let(op=ir.FieldRef() | ir.IsRecord() | ir.Truth() | ir.CallKnown() | ir.CallWithin()):
                pass
            case Let(op=ir.CallClosure() as op):
                used = op.args[1:]
            case Let(op=ir.Prim() as op) if op.name not in ("unbox", "set-box!", "null?"):
                used = op.args
            case Let(op=ir.Copy() | ir.MakeClosure() as op):
                used = op.args
        found.update(atom for atom in used if isinstance(atom, Variable))
    return found


def tensor_makers(module: ir.Module) -> set[int]:
    """The ids of functions in which tensors may be made, by themselves or by whom they call."""
    found: set[int] = set()
    changed = True
    while changed:
        changed = False
        for function in [*module.functions, module.main]:
            if id(function) not in found and any(_makes_tensor(s, found) for s in function.statements()):
                found.add(id(function))
                changed = True
    return found


def _makes_tensor(each: ir.Statement, makers: set[int]) -> bool:
    called = effects.passes(each)
    if called is not None:
        return id(called[0]) in makers
    match each:
        case Let(op=ir.Prim() as op):
            mixed = op.name in effects.OPERATORS and each.var.type in ("any", "tensor")
            return is_about_tensors(op.name) or mixed or op.name in ("apply", "%apply-tail")
        case Let(op=ir.CallClosure() | ir.Foreign()) | ir.TailClosure():
            return True
    return False


def names_of_params(function: Function, params: set[Variable]) -> dict[Atom, set[Variable]]:
    """By variable: the parameters whose value it may be another name of."""
    names: dict[Atom, set[Variable]] = {param: {param} for param in params}
    if not names:
        return names
    copies = function.once(_copies)
    changed = True
    while changed:
        changed = False
        for var, source in copies:
            more = names.get(source)
            if more:
                known = names.setdefault(var, set())
                changed |= not more <= known
                known |= more
    return names


def _copies(function: Function) -> list[tuple[Variable, Atom]]:
    """The variables that are given what another one is, or a constant, and that one."""
    return [
        (each.var, each.op.args[0])
        for each in function.statements()
        if isinstance(each, Let) and isinstance(each.op, ir.Copy)
    ]
