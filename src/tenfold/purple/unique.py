"""Values that nothing else can hold: their release looks at no count."""

from __future__ import annotations

from tenfold.purple import ir
from tenfold.purple.ir import Atom, Drop, Dup, Function, Let, Variable
from tenfold.purple.names import row_of


def find_unique(module: ir.Module) -> None:
    """Mark the drops of values that provably have one owner: made here, or handed over by whoever made them,
    and never
    shared since. Sharing is a `Dup`, or a `Copy` of something not unique."""
    functions = [*module.functions, module.main]
    fresh_results = {id(f): True for f in functions}
    fresh_params = {id(p): True for f in functions for p in f.all_params}
    for f in functions:
        if f.escapes:
            fresh_params.update((id(p), False) for p in f.all_params)
    changed = True
    while changed:
        changed = False
        for function in functions:
            unique = _unique_variables(function, fresh_results, fresh_params)
            for each in ir.statements(function.body):
                for callee, args in _passes(each):
                    for param, arg in zip(callee.all_params, args):
                        if fresh_params[id(param)] and not _is_unique(arg, unique):
                            fresh_params[id(param)] = False
                            changed = True
                gives = _gives_unique(each, unique, fresh_results)
                if not gives and fresh_results[id(function)]:
                    fresh_results[id(function)] = False
                    changed = True
    for function in functions:
        unique = _unique_variables(function, fresh_results, fresh_params)
        for each in ir.statements(function.body):
            if isinstance(each, Drop) and each.var in unique:
                each.unique = unique[each.var]


def _passes(each: ir.Statement) -> list[tuple[Function, list[Atom]]]:
    if isinstance(each, Let) and isinstance(each.op, ir.CallKnown | ir.MakeClosure):
        if isinstance(each.op, ir.CallKnown):
            return [(each.op.function, each.op.args)]
        return [(each.op.function, [*[ir.Constant(None)] * len(each.op.function.params), *each.op.args])]
    if isinstance(each, Let) and isinstance(each.op, ir.CallWithin):
        return [(each.op.function, each.op.args[each.op.kind == "device" :])]
    if isinstance(each, ir.LetTry | ir.TailCall):
        return [(each.function, each.args)]
    return []


def _is_unique(atom: Atom, unique: dict[Variable, str]) -> bool:
    return isinstance(atom, Variable) and (not atom.is_managed or atom in unique)


def _gives_unique(each: ir.Statement, unique: dict[Variable, str], results: dict[int, bool]) -> bool:
    if isinstance(each, ir.Return):
        return _is_unique(each.value, unique)
    if isinstance(each, ir.TailCall):
        return results[id(each.function)]
    return not isinstance(each, ir.TailClosure)


# Primitives whose result is a new object, never one of their operands nor a shared one.
NEW = {
    "cons", "box", "vector", "make-vector", "make-hash-table", "string-append", "substring", "tensor",
    "detach", "list->vector", "number->fixed", "%uniform", "%normal", "%permutation",
}  # fmt: skip


def _is_fresh(op: ir.Op, results: dict[int, bool], unique: dict[Variable, str]) -> str:
    match op:
        case ir.Prim():
            return (
                f"made by {op.name}"
                if op.name in NEW or (op.name.startswith("tensor-") and _is_new_row(op.name))
                else ""
            )
        case ir.MakeRecord():
            return "made as a new record"
        case ir.Reuse():
            return f"made by {op.name}"
        case ir.MakeClosure() if op.args:
            return "made as a new closure"
        case ir.CallKnown() | ir.CallWithin():
            return f"the only owner's result of {op.function.name}" if results[id(op.function)] else ""
        case ir.Copy():
            arg = op.args[0]
            return unique.get(arg, "") if isinstance(arg, Variable) else ""
    return ""


# Primitives that neither keep an operand nor give it back, so that it has no further owner afterwards.
LETS_GO = {
    "car", "cdr", "caar", "cadr", "cdar", "cddr", "caddr", "length", "list-ref", "vector-ref",
    "vector-length", "unbox", "not", "eq?", "eqv?", "equal?", "display", "write", "print",
    "display->string", "write->string", "string-append", "substring", "string-length", "string-ref",
    "string=?", "string<?", "hash-table-count", "hash-table-contains?", "hash-table->list", "vector->list",
    "list->vector", "tensor", "tensor-ref", "tensor->list", "tensor-item", "tensor-shape", "tensor-rank",
    "tensor-count", "tensor-dtype", "tensor-device", "backward", "tensor-grad", "detach", "clear-grad!",
    "requires-grad?",
}  # fmt: skip


def _kept_by(op: ir.Op) -> set[Variable]:
    """The operands that an operation may hold on to, or give back as its own result."""
    borrowed = {a for a, takes in zip(op.args, op.owned()) if not takes and isinstance(a, Variable)}
    match op:
        case ir.Prim():
            row = row_of(op.name)
            lets_go = op.name in LETS_GO or op.name.endswith("?") or op.name.startswith("%check")
            lets_go = lets_go or (
                op.name in ("+", "-", "*", "/", "<", ">", "<=", ">=", "=") and len(op.args) == 2
            )
            return set() if lets_go or (row is not None and not row[1]) else borrowed
        case (
            ir.Truth()
            | ir.FieldRef()
            | ir.IsRecord()
            | ir.CheckField()
            | ir.Convert()
            | ir.IsAbsent()
            | ir.Defined()
        ):
            return set()
    return borrowed


def _is_new_row(name: str) -> bool:
    row = row_of(name)
    return row is not None and not row[1]


def _unique_variables(
    function: Function, results: dict[int, bool], params: dict[int, bool]
) -> dict[Variable, str]:
    """The variables each of whose definitions gives a unique value, and that are never shared."""
    shared: set[Variable] = set()
    definitions: dict[Variable, list[ir.Op]] = {}
    other: set[Variable] = set()
    for each in ir.statements(function.body):
        if isinstance(each, Dup):
            shared.add(each.var)
        elif isinstance(each, Let):
            definitions.setdefault(each.var, []).append(each.op)
            shared |= _kept_by(each.op)
        elif isinstance(each, ir.LetTry):
            other.add(each.var)
        elif isinstance(each, ir.Uncons):
            other |= {each.car, each.cdr}
    unique = {p: "handed over by every caller" for p in function.all_params if p.is_managed and params[id(p)]}
    unique |= {v: "made once" for v in definitions if v.is_managed and v not in other and v not in unique}
    for p in function.all_params:
        if not params[id(p)]:
            unique.pop(p, None)
    for var in shared | other:
        unique.pop(var, None)
    reasons: dict[Variable, str] = {}
    changed = True
    while changed:
        changed = False
        for var in list(unique):
            why = [_is_fresh(op, results, unique) for op in definitions.get(var, [])]
            if not all(why):
                del unique[var]
                changed = True
            elif why:
                reasons[var] = why[0]
    return {var: reasons.get(var, why) for var, why in unique.items()}
