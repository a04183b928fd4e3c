"""Lists none of whose pairs anything else can hold: the rest of such a list is unique as the list itself is.
Of some nothing else can hold the elements either, nor what those that are pairs themselves lead to: they are
whole.

A list loses that where a share of one of its rests, or elements, is given out: `cdr` of a list that goes on
living, a rest that is only lent and then shared, or a function that does so with the list it looks at.
Programs that call `set-cdr!`, or `set-car!`, have no such lists: a part may be replaced by what is shared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from tenfold.purple import effects, ir
from tenfold.purple.ir import Atom, Constant, Function, Let, Variable
from tenfold.purple.names import PRIMITIVES, row_of

RESTS = ("cdr", "cddr", "cdar", "list-tail", "drop")
LISTS = (
    "list",
    "reverse",
    "string->list",
    "vector->list",
    "hash-table->list",
    "take",
    "command-line",
    "%environment",
    "tensor->list",
    "tensor-shape",
)


# Primitives that make lists of elements that nothing else holds.
WHOLE_LISTS = ("tensor->list", "tensor-shape", "string->list", "command-line", "%environment")
# Kinds of results through which a primitive gives out no part of its operands.
PARTLESS = (
    "bool", "int", "integer", "float", "number", "string", "char", "symbol", "keyword", "void", "tensor",
    "bytevector",
)  # fmt: skip


def writers(module: ir.Module) -> set[str]:
    """What may replace the rests of lists, `set-cdr!`, or their elements, `set-car!`."""
    return {
        statement.op.name
        for function in [*module.functions, module.main]
        for statement in function.statements()
        if isinstance(statement, Let)
        and isinstance(statement.op, ir.Prim | ir.PrimClosure)
        and statement.op.name in ("set-car!", "set-cdr!")
    }


def makes_list(op: ir.Prim) -> bool:
    """Whether what a primitive makes is a list of new pairs, or no list."""
    if op.name in LISTS:
        return True
    found = PRIMITIVES.get(op.name)
    return found is not None and found.result not in ("pair", "list", "any", "number*") and op.name != "cons"


def makes_whole(op: ir.Prim) -> bool:
    """Whether what a primitive makes is a whole list, or no list."""
    found = PRIMITIVES.get(op.name)
    return op.name in WHOLE_LISTS or (found is not None and found.result in PARTLESS)


def shared_parts(functions: list[Function], parts: Parts) -> set[Variable]:
    """The variables of whose parts something else gets a share, parameters among them."""
    leads: Leads = {}
    given_out: list[Variable] = []
    for function in functions:
        add_sources(function, parts, leads)
        for statement in function.statements():
            given_out += _given_out(statement, parts)
            called = effects.passes(statement)
            for param, arg in zip(called[0].all_params, called[1]) if called is not None else ():
                if isinstance(arg, Variable):
                    leads.setdefault(param, []).append(arg)
    return reached(given_out, leads)


# Which parts of lists are followed: none, their rests alone, or their elements too.
Parts: TypeAlias = Literal["none", "rests", "all"]


Leads: TypeAlias = dict[Variable, list[Variable]]


def add_sources(function: Function, parts: Parts, leads: Leads) -> None:
    """Note whose parts the lent variables of a function look at; with none, what they are other names of."""
    for statement in function.statements():
        if not isinstance(statement, Let) or not statement.op.args:
            continue
        var, op = statement.var, statement.op
        if var.lender is not None or var.borrowed:
            lends = op.function.lends if isinstance(op, ir.CallKnown) else None
            first = op.args[lends[0] if lends is not None else 0]
            looks = isinstance(op, ir.Copy) or lends is not None or _gives(op, parts)
            if looks and isinstance(first, Variable):
                leads.setdefault(var, []).append(first)


def reached(starts: Iterable[Variable], leads: Leads) -> set[Variable]:
    """All variables that some lead to, they themselves included."""
    found = set(starts)
    work = list(found)
    while work:
        for source in leads.get(work.pop(), ()):
            if source not in found:
                found.add(source)
                work.append(source)
    return found


def _gives(op: ir.Op, parts: Parts) -> bool:
    """Whether an operation gives a part of its first operand that is followed. Of the rests of an element
    nothing is known."""
    if parts == "none" or not isinstance(op, ir.Prim) or not effects.gives_part(op):
        return False
    return op.name in RESTS or (parts == "all" and effects.gives_part(op) == "pair")


def _given_out(each: ir.Statement, parts: Parts) -> list[Variable]:
    """The variables of whose parts a statement itself gives a share to something else."""
    atoms: list[Atom] = []
    called = effects.passes(each)
    if called is not None:
        lends = called[0].lends
        if lends is not None and isinstance(each, Let) and each.var.is_managed:
            atoms.append(called[1][lends[0]])  # of whose part a share is taken, be it a rest
    elif isinstance(each, Let):
        op = each.op
        match op:
            case ir.Share() | ir.Foreign():
                atoms = op.args
            case ir.MakeRecord() | ir.SetField():
                atoms = effects.watched(op)
            case ir.Prim() if _gives(op, parts):
                atoms = op.args[:1] if each.var.lender is None and not each.var.borrowed else []
            case ir.Prim():
                atoms = [arg for arg in effects.kept(op) if op.name not in RESTS]
                if parts == "all" and not _keeps_parts(op):
                    atoms = [arg for arg, taken in zip(op.args, op.owned()) if not taken]
            case ir.Copy() if each.var.is_managed:
                arg = op.args[0]
                atoms = [arg] if isinstance(arg, Variable) and not arg.is_managed else []
    elif isinstance(each, ir.Dup):
        atoms = [each.var]
    return [atom for atom in atoms if isinstance(atom, Variable)]


def _keeps_parts(op: ir.Prim) -> bool:
    """Whether a primitive gives out no element of the lists that it looks at."""
    found = PRIMITIVES.get(op.name)
    if found is None or op.name == "apply":
        return row_of(op.name) is not None or op.name.startswith("%check")
    return found.result in PARTLESS


def is_end(atom: Atom) -> bool:
    """Whether an operand is no list of pairs: nil, or another literal that is no object."""
    if isinstance(atom, Constant):
        return ir.is_immediate(atom.value)
    return atom.rep != ir.VALUE or atom.type in (
        "nil",
        "bool",
        "char",
        "void",
        "int",
        "integer",
        "float",
        "number",
        "string",
    )
