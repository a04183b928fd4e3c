"""Checks that need not be made again: after `(car x)` succeeded `x` is a pair, and after a field of it was
read a record of that type, until the variable is defined again. `drop_checks` lets C take the parts of those
as they are.

A pass of its own after ownership is proved: whether a check is still there changes nothing in who releases
what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tenfold.purple import ir
from tenfold.purple.ir import Atom, Block, Let, Variable
from tenfold.purple.natives import Form

PAIR = "pair"
Kind: TypeAlias = Any  # PAIR, or the type of a record
# Primitives that succeed only if their operand is a pair.
TAKE_PAIRS = (
    "car", "cdr", "caar", "cadr", "cdar", "cddr", "caddr", "%check-car", "%check-cdr", "set-car!", "set-cdr!",
)  # fmt: skip


@dataclass
class Facts:
    """What is known at a place: what variables are, and what follows for another one from a boolean variable
    that is true, and from one that is false."""

    kinds: dict[Variable, Kind] = field(default_factory=dict)
    tests: dict[Variable, dict[bool, tuple[Variable, Kind]]] = field(default_factory=dict)

    def of(self, atom: Atom) -> Kind:
        if not isinstance(atom, Variable):
            return None
        return PAIR if atom.type == "pair" else self.kinds.get(atom)

    def learn(self, atom: Atom, kind: Kind) -> None:
        if isinstance(atom, Variable):
            self.kinds[atom] = kind

    def forget(self, defined: set[Variable]) -> None:
        for var in defined:
            self.kinds.pop(var, None)
            self.tests.pop(var, None)
        for test, sides in list(self.tests.items()):
            if any(var in defined for var, _ in sides.values()):
                del self.tests[test]

    def branch(self, test: Atom, truth: bool) -> Facts:
        inner = Facts(dict(self.kinds), dict(self.tests))
        found = self.tests.get(test, {}).get(truth) if isinstance(test, Variable) else None
        if found is not None:
            inner.learn(*found)
        return inner


def drop_checks(module: ir.Module) -> None:
    for function in [*module.functions, module.main]:
        function.body = _block(function.body, Facts())


def _block(block: Block, facts: Facts) -> Block:
    """The block without the checks; what is known after it is in `facts` then."""
    kept: Block = []
    for each in block:
        match each:
            case ir.If():
                then, otherwise = facts.branch(each.test, True), facts.branch(each.test, False)
                each.then, each.otherwise = _block(each.then, then), _block(each.otherwise, otherwise)
                sides = ((then, each.then), (otherwise, each.otherwise))
                _join(facts, *(end for end, side in sides if not ir.leaves(side)))
                facts.forget(_defined([each]))
            case ir.Loop():
                facts.forget(_defined(each.body))
                each.body = _block(each.body, facts)
            case Let(op=ir.Prim(name="%check-car" | "%check-cdr") as op) if facts.of(op.args[0]) == PAIR:
                continue
            case Let():
                _let(each, facts)
            case _:
                facts.forget(_defined([each]))
        kept.append(each)
    return kept


def _join(facts: Facts, *ends: Facts) -> None:
    """What is known where branches meet."""
    if ends:
        first, *others = ends
        same = lambda var, kind: all(other.kinds.get(var) == kind for other in others)
        facts.kinds = {var: kind for var, kind in first.kinds.items() if same(var, kind)}


def _let(each: Let, facts: Facts) -> None:
    op, var = each.op, each.var
    first = op.args[0] if op.args else None
    known = facts.of(first) if first is not None else None
    follows: dict[bool, tuple[Variable, Kind]] = {}
    made: Kind = None
    taken: Kind = None  # what the first operand is if the operation succeeded
    match op:
        case ir.Prim(name="car" | "cdr" as part) if len(op.args) == 1:
            taken = PAIR
            if known == PAIR:
                part_of = f"pu_{part}_known({{0}})"
                shared = part_of if var.lender is not None else f"pu_dup({part_of})"
                op.form = Form(shared, (ir.VALUE,), ir.VALUE, "")
        case ir.Prim() if op.name in TAKE_PAIRS and op.args:
            taken = PAIR
        case ir.Prim(name="cons"):
            made = PAIR
        case ir.Prim(name="pair?", args=[Variable() as tested]):
            follows = {True: (tested, PAIR)}
        case ir.Prim(name="null?", args=[Variable(type="list") as tested]):
            follows = {False: (tested, PAIR)}
        case ir.Prim(name="not", args=[Variable() as test]):
            follows = {not truth: fact for truth, fact in facts.tests.get(test, {}).items()}
        case ir.IsRecord(args=[Variable() as tested]):
            follows = {True: (tested, op.type)}
        case ir.FieldRef():
            taken = op.type
            op.known = known is op.type and not op.type.fields[op.index].weak
        case ir.SetField():
            taken = op.type
        case ir.MakeRecord():
            made = op.type
        case ir.Rebuild():
            made = op.made.type if isinstance(op.made, ir.MakeRecord) else PAIR
        case ir.Copy() | ir.Share():
            made = known
            follows = facts.tests.get(first, {}) if isinstance(first, Variable) else {}
    if taken is not None and first is not None:
        facts.learn(first, taken)
    facts.forget({var})
    if made is not None:
        facts.learn(var, made)
    if follows and all(other is not var for other, _ in follows.values()):
        facts.tests[var] = follows


def _defined(block: Block) -> set[Variable]:
    found: set[Variable] = set()
    for each in ir.statements(block):
        match each:
            case Let():
                found.add(each.var)
            case ir.LetTry():
                found |= {each.var, each.ok}
            case ir.Uncons():
                found |= {each.car, each.cdr}
    return found
