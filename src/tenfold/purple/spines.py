"""Lists none of whose pairs anything else can hold: the rest of such a list is unique as the list itself is.

A list loses that where a share of one of its rests is given out: `cdr` of a list that goes on living, a
rest that is only lent and then shared, or a function that does so with the list it looks at. Programs that
call `set-cdr!` have no such lists: a rest may be replaced by what is shared."""

from __future__ import annotations

from tenfold.purple import effects, ir
from tenfold.purple.ir import Atom, Constant, Function, Let, Variable
from tenfold.purple.names import PRIMITIVES

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
)


def is_mutated(module: ir.Module) -> bool:
    """Whether something may replace the rest of a list."""
    for function in [*module.functions, module.main]:
        for statement in ir.statements(function.body):
            if (
                isinstance(statement, Let)
                and isinstance(statement.op, ir.Prim | ir.PrimClosure)
                and statement.op.name == "set-cdr!"
            ):
                return True
    return False


def makes_list(op: ir.Prim) -> bool:
    """Whether what a primitive makes is a list of new pairs, or no list."""
    if op.name in LISTS:
        return True
    found = PRIMITIVES.get(op.name)
    return found is not None and found.result not in ("pair", "list", "any", "number*") and op.name != "cons"


def leaking(functions: list[Function]) -> set[Variable]:
    """The parameters of whose rests a function may give a share to something else."""
    found: set[Variable] = set()
    roots = {id(function): Roots(function) for function in functions}
    changed = True
    while changed:
        changed = False
        for function in functions:
            for var in roots[id(function)].shared(found):
                if var not in found and var in function.all_params:
                    found.add(var)
                    changed = True
    return found


class Roots:
    """One function: whose rests its lent variables look at; without `parts`, what they are other names of."""

    def __init__(self, function: Function, parts: bool = True):
        self.function = function
        self.sources: dict[Variable, set[Variable]] = {}
        for statement in ir.statements(function.body):
            if (
                isinstance(statement, Let)
                and (statement.var.lender is not None or statement.var.borrowed)
                and statement.op.args
            ):
                lends = statement.op.function.lends if isinstance(statement.op, ir.CallKnown) else None
                first = statement.op.args[lends[0] if lends is not None else 0]
                looks = (
                    isinstance(statement.op, ir.Copy)
                    or lends is not None
                    or (parts and _gives_rest(statement.op))
                )
                if looks and isinstance(first, Variable):
                    self.sources.setdefault(statement.var, set()).add(first)

    def of(self, var: Variable) -> set[Variable]:
        found, work = {var}, [var]
        while work:
            for source in self.sources.get(work.pop(), ()):
                if source not in found:
                    found.add(source)
                    work.append(source)
        return found

    def shared(self, leaky: set[Variable]) -> set[Variable]:
        """The variables of whose rests something else gets a share."""
        found: set[Variable] = set()
        for statement in ir.statements(self.function.body):
            for var in _given_out(statement, leaky):
                found |= self.of(var)
        return found


def _gives_rest(op: ir.Op) -> bool:
    """Whether an operation gives a rest of its first operand: no element, of whose rests nothing is known."""
    return bool(effects.gives_part(op)) and isinstance(op, ir.Prim) and op.name in RESTS


def _given_out(each: ir.Statement, leaky: set[Variable]) -> list[Variable]:
    atoms: list[Atom] = []
    called = effects.passes(each)
    if called is not None:
        atoms = [arg for arg, param in zip(called[1], called[0].all_params) if param in leaky]
        lends = called[0].lends
        if lends is not None and isinstance(each, Let) and each.var.is_managed:
            atoms.append(called[1][lends[0]])  # of whose part a share is taken, be it a rest
    elif isinstance(each, Let):
        op = each.op
        match op:
            case ir.Share() | ir.Foreign():
                atoms = op.args
            case ir.Prim(name=name) if name in RESTS and each.var.lender is None and not each.var.borrowed:
                atoms = op.args[:1]
            case ir.Prim():
                atoms = [arg for arg in effects.kept(op) if op.name not in RESTS]
            case ir.Copy() if each.var.is_managed:
                arg = op.args[0]
                atoms = [arg] if isinstance(arg, Variable) and not arg.is_managed else []
    elif isinstance(each, ir.Dup):
        atoms = [each.var]
    return [atom for atom in atoms if isinstance(atom, Variable)]


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
