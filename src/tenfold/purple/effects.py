"""Facts about operations that ownership rests on: what they make new, what they keep, what they write.

They are facts of the C runtime. Both those who decide (`borrow`, `parts`, `unique`) and the certifier read
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from tenfold.purple import core, ir
from tenfold.purple.ir import Function, Let
from tenfold.purple.names import PRIMITIVES, row_of

# Kinds of results that a primitive makes anew: numbers are boxed where they need to be, never passed on.
NEW_KINDS = (
    "number",
    "int",
    "integer",
    "float",
    "string",
    "list",
    "vector",
    "table",
    "box",
    "pair",
    "tensor",
    "bytevector",
)
# Primitives of such a result that give back an operand, a part of one, or a shared object all the same.
PASSED_ON = {"error-message", "error-irritants"}
# Primitives of another kind of result that is new, or no object.
ALSO_NEW = {
    "string->number", "string-search", "digit-value", "%console-line", "getenv", "tensor->list", "tensor-ref",
    "tensor-grad", "tensor-item", "tensor-load",
}  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "=", "<", ">", "<=", ">=", "min", "max")


def makes_new(op: ir.Prim) -> bool:
    """Whether a primitive's result is an object that nothing else holds, or none."""
    if row_of(op.name) is not None:
        return True
    if op.name in OPERATORS:
        return not _gives_operand(op)
    found = PRIMITIVES.get(op.name)
    if found is None or op.name in PASSED_ON:
        return False
    return found.result in NEW_KINDS or op.name in ALSO_NEW


def _gives_operand(op: ir.Prim) -> bool:
    """Whether an operator gives its only operand as it is."""
    return len(op.args) == 1 and op.name in ("+", "*")


# Primitives that hold on to operands, or may give them back as their result: which ones; -1 stands for all.
KEEPERS = {
    "hash-table-ref": 2, "make-vector": 1, "list-tail": 0, "drop": 0, "apply": -1, "%apply-tail": -1,
    "error": -1, "raise": -1, "%match-failed": -1,
}  # fmt: skip


def kept(op: ir.Prim) -> list[ir.Atom]:
    """The operands that a primitive borrows and yet may hold on to, or give back."""
    if op.name in OPERATORS:
        return op.args if _gives_operand(op) else []
    at = KEEPERS.get(op.name)
    if at is None:
        return []
    if op.name in ("apply", "%apply-tail"):  # of the list of arguments only the elements are passed on
        return op.args[:-1]
    return op.args if at < 0 else op.args[at : at + 1]


def watched(op: ir.Op) -> list[ir.Atom]:
    """The operands that an operation puts into weak fields: it borrows them, and yet whoever reads such a
    field gets a share."""
    made = op.made if isinstance(op, ir.Rebuild) else op
    if isinstance(made, ir.MakeRecord):
        return [arg for arg, field in zip(op.args, made.type.fields) if field.weak]
    if isinstance(made, ir.SetField) and made.type.fields[made.index].weak:
        return op.args[1:]
    return []


# What primitives that write replace the parts of.
WRITTEN = {
    "set-car!": "pair", "set-cdr!": "pair", "vector-set!": "vector", "set-box!": "box", "hash-table-set!":
    "table", "hash-table-delete!": "table",
}  # fmt: skip
ANYTHING = frozenset(("anything",))
NOTHING: frozenset[str] = frozenset()
# Primitives that give a part of their first operand, and C that gives it without a share of its own.
PARTS = {
    "car": "pu_car_of({0})", "cdr": "pu_cdr_of({0})", "unbox": "pu_unbox_of({0})", "caar": "pu_caar_of({0})",
    "cadr": "pu_cadr_of({0})", "cdar": "pu_cdar_of({0})", "cddr": "pu_cddr_of({0})",
    "caddr": "pu_caddr_of({0})", "vector-ref": "pu_vector_ref_of({0}, {1})", "list-ref":
    "pu_list_ref_of({0}, {1})", "list-tail": "pu_list_tail_of({0}, {1})", "drop": "pu_list_drop_of({0}, {1})",
}  # fmt: skip
TAKEN = {"car": 1, "cdr": 1, "unbox": 1, "caar": 1, "cadr": 1, "cdar": 1, "cddr": 1, "caddr": 1}


def gives_part(op: ir.Op) -> str:
    """What an operation gives a part of, that goes on holding it: its first operand is a "pair", a
    "vector", … "" where it gives no such part."""
    if isinstance(op, ir.Prim):
        if op.name not in PARTS or len(op.args) != TAKEN.get(op.name, 2) or op.keywords:
            return ""
        return {"vector-ref": "vector", "unbox": "box"}.get(op.name, "pair")
    whole = isinstance(op, ir.FieldRef) and not op.type.fields[op.index].weak
    return field_of(op.type, op.index) if whole else ""  # type: ignore[attr-defined]


def looks_into(op: ir.Op) -> tuple[int, frozenset[str]] | None:
    """Which operand goes on holding what an operation gives, and by containers of which kinds; None where
    none does."""
    if isinstance(op, ir.CallKnown):
        return op.function.lends
    kind = gives_part(op)
    return (0, frozenset((kind,))) if kind else None


def field_of(type_: core.DefType, index: int) -> str:
    """What a field of records is called among the parts that are written."""
    return f"{type_.name} {type_.fields[index].name}"


def touched(written: frozenset[str], kinds: Iterable[str]) -> bool:
    """Whether a write may replace parts of these kinds."""
    return any(written and (kind in written or "anything" in written) for kind in kinds)


Writing: TypeAlias = dict[int, frozenset[str]]
UNKNOWN = 0  # stands for the procedure that a call through a closure reaches, in place of a function's id


def writers(module: ir.Module) -> Writing:
    """By the ids of functions: the parts of what they may replace, or let others replace. A procedure that
    is not known where it is called is one of the functions that escape, or a primitive used as a value."""
    functions = [*module.functions, module.main]
    found: Writing = {id(function): NOTHING for function in functions}
    as_values = [WRITTEN[name] for name in module.primitives_as_values if name in WRITTEN]
    found[UNKNOWN] = frozenset(as_values)
    callees: dict[int, set[int]] = {UNKNOWN: {id(function) for function in functions if function.escapes}}
    nobody = dict.fromkeys(found, NOTHING)
    for function in functions:
        body = function.statements()
        found[id(function)] = NOTHING.union(*(writes(each, nobody) for each in body))
        callees[id(function)] = {callee for each in body for callee in _reached(each)}
    changed = True
    while changed:
        changed = False
        for caller, called in callees.items():
            all_of = found[caller].union(*(found[callee] for callee in called))
            if all_of != found[caller]:
                found[caller] = all_of
                changed = True
    return found


def _reached(each: ir.Statement) -> list[int]:
    """The ids of functions that a statement calls, UNKNOWN among them."""
    called = passes(each)
    if called is not None:
        return [id(called[0])]
    match each:
        case Let(op=ir.CallClosure()) | Let(op=ir.Prim(name="apply" | "%apply-tail")) | ir.TailClosure():
            return [UNKNOWN]
    return []


def writes(each: ir.Statement, writing: Writing) -> frozenset[str]:
    """The parts of what a statement may replace."""
    if isinstance(each, Let):
        return _written_by(each.op, writing)
    if isinstance(each, ir.LetTry | ir.TailCall):
        return writing[id(each.function)]
    return writing[UNKNOWN] if isinstance(each, ir.TailClosure) else NOTHING


def _written_by(op: ir.Op, writing: Writing) -> frozenset[str]:
    match op:
        case ir.Prim():
            if op.name in ("apply", "%apply-tail"):
                return writing[UNKNOWN]
            return frozenset((WRITTEN[op.name],)) if op.name in WRITTEN else NOTHING
        case ir.Copy():
            return NOTHING
        case ir.CallKnown() | ir.CallWithin():
            return writing[id(op.function)]
        case ir.CallClosure():
            return writing[UNKNOWN]
        case ir.SetField():
            return frozenset((field_of(op.type, op.index),))
        case ir.StoreGlobal():
            return frozenset(("global",))
        case ir.Foreign():
            return ANYTHING
    return NOTHING


def is_constant_global(program: core.Program, name: str) -> bool:
    """Whether a global is set once: from then on it holds its value until the program ends."""
    return not program.globals[name].assigned


def passes(each: ir.Statement) -> tuple[Function, list[ir.Atom]] | None:
    """The known function that a statement calls, and what it passes to its parameters."""
    if isinstance(each, Let):
        op = each.op
        if isinstance(op, ir.CallKnown):
            return op.function, op.args
        if isinstance(op, ir.CallWithin):
            return op.function, op.args[op.kind == "device" :]
    elif isinstance(each, ir.LetTry | ir.TailCall):
        return each.function, each.args
    return None
