"""Narrower names for what a check has told about a number.

After `(vector-ref v i)` succeeded `i` is an integer that 64 bits hold, and where `(< i n)` is true it is
below `n`. `insert` gives it a name of its own from there on, by `ir.Narrow`, until it is defined again;
`infer` finds the type and the interval of that name; `resolve` takes the names away that are nothing else in
C."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenfold.purple import ir, ranges
from tenfold.purple.ir import Atom, Block, Function, Let, Variable

# Primitives that succeed only if this operand is an index.
INDEXED = {"vector-ref": 1, "vector-set!": 1, "string-ref": 1, "list-ref": 1}
INDEX: ranges.Interval = (0, 1 << 47)
# What each comparison says of its second operand, and what it says where it is false.
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}
REFUTED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
NUMERIC = ("int", "integer", "number", "any")

Names = dict[Variable, Variable]
Fact = tuple[Atom, str, Atom | None]  # an operand, its relation, and to what


@dataclass
class Scope:
    """What is known at a place: the narrower names of variables, what follows from a boolean variable where
    it is true and where it is false, and what the block has checked so far."""

    names: Names = field(default_factory=dict)
    follows: dict[Variable, dict[bool, list[Fact]]] = field(default_factory=dict)
    checked: list[Fact] = field(default_factory=list)

    def inner(self) -> Scope:
        return Scope(dict(self.names), dict(self.follows))

    def forget(self, defined: set[Variable]) -> None:
        """Variables are defined again: what was known of them is so no more."""
        for var in defined:
            self.names.pop(var, None)
        holds = lambda fact: fact[0] not in defined and fact[2] not in defined
        self.checked = list(filter(holds, self.checked))
        self.follows = {
            test: {truth: list(filter(holds, facts)) for truth, facts in sides.items()}
            for test, sides in self.follows.items()
            if test not in defined
        }


def insert(function: Function, number: int) -> int:
    """Add the names to a function; the numbers of variables go on from `number`."""
    narrowing = Narrowing(number)
    function.body = narrowing.block(function.body, Scope())
    return narrowing.number


class Narrowing:
    def __init__(self, number: int):
        self.number = number

    def block(self, block: Block, scope: Scope) -> Block:
        out: Block = []
        for each in block:
            facts = _facts(each)
            match each:
                case ir.If():
                    self.branches(each, scope)
                case ir.Loop():
                    scope.forget(_defined(each.body))
                    each.body = self.block(each.body, scope.inner())
                case _:
                    rename(each, scope.names)
                    scope.forget(_defined([each]))
            out.append(each)
            if isinstance(each, Let) and facts is not None:
                scope.follows[each.var] = facts
            if isinstance(each, Let) and isinstance(each.op, ir.Prim):
                at = INDEXED.get(each.op.name)
                if at is not None and at < len(each.op.args) and not each.op.keywords:
                    self.narrow((self.root(each.op.args[at], scope), "index", None), each.place, scope, out)
        return out

    def root(self, atom: Atom, scope: Scope) -> Atom:
        """What a variable is called where nothing is known of it."""
        return next((known for known, name in scope.names.items() if name is atom), atom)

    def branches(self, each: ir.If, scope: Scope) -> None:
        test = each.test
        sides = scope.follows.get(test, {}) if isinstance(test, Variable) else {}
        rename(each, scope.names)
        inner: dict[bool, Scope] = {}
        blocks: dict[bool, Block] = {}
        for truth, block in ((True, each.then), (False, each.otherwise)):
            inner[truth] = scope.inner()
            out: Block = []
            for fact in sides.get(truth, ()) if block else ():
                self.narrow(fact, each.place, inner[truth], out)
            blocks[truth] = [*out, *self.block(block, inner[truth])]
        each.then, each.otherwise = blocks[True], blocks[False]
        scope.forget(_defined([each]))
        for truth in (True, False):  # `(and a b)` is true only where both are
            decided = _decided(blocks[truth])
            if decided is not None and _last(blocks[not truth]) is decided[0]:
                facts = inner[not truth].follows.get(decided[0], {}).get(not decided[1], [])
                gone = _defined([each])
                known = [*inner[not truth].checked, *facts]
                kept = [fact for fact in known if fact[0] not in gone and fact[2] not in gone]
                scope.follows[decided[0]] = {not decided[1]: kept}

    def narrow(self, fact: Fact, place: ir.Place, scope: Scope, out: Block) -> None:
        scope.checked.append(fact)
        var, relation, other = fact
        if not isinstance(var, Variable):
            return
        self.number += 1
        name = Variable(var.name, self.number, place, var.origin)
        current = scope.names.get(var, var)
        known = scope.names.get(other, other) if isinstance(other, Variable) else other
        out.append(Let(name, ir.Narrow([current] if known is None else [current, known], relation), place))
        scope.names[var] = name


def _facts(each: ir.Statement) -> dict[bool, list[Fact]] | None:
    """What follows from a comparison where it is true and where it is false."""
    if not isinstance(each, Let) or not isinstance(each.op, ir.Prim) or len(each.op.args) != 2:
        return None
    name, (one, other) = each.op.name, each.op.args
    if name not in TURNED:
        return None
    facts: dict[bool, list[Fact]] = {True: [(one, name, other), (other, TURNED[name], one)]}
    if name in REFUTED:
        facts[False] = [(one, REFUTED[name], other), (other, TURNED[REFUTED[name]], one)]
    return facts


def _decided(block: Block) -> tuple[Variable, bool] | None:
    """The boolean variable that a block ends by making a constant."""
    match block[-1:]:
        case [Let(var=var, op=ir.Copy(args=[ir.Constant(value=bool() as value)]))]:
            return var, value
    return None


def _last(block: Block) -> Variable | None:
    """The variable that a block ends by defining, in whatever way."""
    last = block[-1] if block else None
    if isinstance(last, ir.If):
        return _last(last.then) if _last(last.then) is _last(last.otherwise) else None
    return last.var if isinstance(last, Let) else None


def _defined(block: Block) -> set[Variable]:
    found: set[Variable] = set()
    for each in ir.statements(block):
        if isinstance(each, Let):
            found.add(each.var)
        elif isinstance(each, ir.LetTry):
            found |= {each.var, each.ok}
    return found


def rename(each: ir.Statement, names: Names) -> None:
    """Let a statement read variables by their new names; those inside its blocks stay."""
    renamed = lambda atoms: [names.get(atom, atom) for atom in atoms]
    match each:
        case Let():
            each.op.args = renamed(each.op.args)
        case ir.LetTry() | ir.TailCall() | ir.TailClosure():
            each.args = renamed(each.args)
        case ir.If():
            (each.test,) = renamed([each.test])
        case ir.Return():
            (each.value,) = renamed([each.value])


def within(op: ir.Narrow, known: ranges.Interval, other: ranges.Interval | None) -> ranges.Interval:
    """The part of an interval that a check leaves; all of it where that is nothing, so far at least."""
    low, high = known
    if op.relation == "index":
        low, high = max(low, INDEX[0]), min(high, INDEX[1])
    elif other is not None:
        if op.relation in ("<", "<=", "="):
            high = min(high, other[1] - (op.relation == "<"))
        if op.relation in (">", ">=", "="):
            low = max(low, other[0] + (op.relation == ">"))
    return (low, high) if low <= high else known


def resolve(function: Function) -> None:
    """Give the names up that are no other kind of variable in C than what they name."""
    names: Names = {}
    for statement in ir.statements(function.body):
        rename(statement, names)
        if isinstance(statement, Let) and isinstance(statement.op, ir.Narrow):
            source = statement.op.args[0]
            assert isinstance(source, Variable)
            if source.rep == statement.var.rep:
                names[statement.var] = source
    if names:
        function.body = _without(function.body, names)


def _without(block: Block, names: Names) -> Block:
    kept: Block = []
    for each in block:
        if isinstance(each, Let) and each.var in names:
            continue
        if isinstance(each, ir.If):
            each.then, each.otherwise = _without(each.then, names), _without(each.otherwise, names)
        elif isinstance(each, ir.Loop):
            each.body = _without(each.body, names)
        kept.append(each)
    return kept
