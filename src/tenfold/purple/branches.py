"""Branches that types decide: a predicate of something whose type is known is no question, and what stands in
the branch that is never taken widens no type."""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.purple import ir
from tenfold.purple.ir import Atom, Block, Constant, Let, Variable
from tenfold.purple.values import NIL

Truths = frozenset[bool]
NEVER: Truths = frozenset()
EITHER: Truths = frozenset((True, False))
NUMBERS = ("int", "integer", "float", "number")
# Predicates, and the types all of whose values satisfy them.
SATISFIED = {
    "pair?": ("pair",), "null?": ("nil",), "number?": NUMBERS, "float?": ("float",), "string?": ("string",),
    "symbol?": ("symbol",), "char?": ("char",), "boolean?": ("bool",), "vector?": ("vector",),
    "tensor?": ("tensor",), "procedure?": ("routine", "procedure"),
}  # fmt: skip
# Types none of whose values satisfies a predicate that it is not listed for.
DISJOINT = (
    "int", "integer", "float", "string", "symbol", "char", "bool", "vector", "tensor", "nil", "pair",
    "record", "void", "keyword",
)  # fmt: skip
TRUE = (
    "int",
    "integer",
    "float",
    "number",
    "string",
    "symbol",
    "char",
    "vector",
    "pair",
    "record",
    "keyword",
)


class Branches:
    """What the boolean variables of a program can be, as far as `infer` has come. Those in `others` get their
    values in other ways than by definitions."""

    def __init__(self, others: Iterable[Variable]) -> None:
        self.truths: dict[Variable, Truths] = dict.fromkeys(others, EITHER)
        # Of what is not computed yet; in the end, of what never is.
        self.unknown = NEVER
        self.met_unknown = False  # whether that was asked for, since `infer` last set this

    def note(self, let: Let, types: list[str]) -> bool:
        """Add what a definition gives, by the types of its operands; whether that is more than was known."""
        known = self.truths.get(let.var, NEVER)
        self.truths[let.var] = known | self.given(let.op, types)
        return self.truths[let.var] != known

    def given(self, op: ir.Op, types: list[str]) -> Truths:
        match op:
            case ir.Copy():
                return self.of(op.args[0], types[0])
            case ir.Prim(name="not", args=[arg]):
                return frozenset(not truth for truth in self.of(arg, types[0]))
            case ir.Prim(name=name, args=[_]) if name in SATISFIED:
                return self.not_computed() if types[0] == "none" else satisfied(name, types[0])
        return EITHER

    def of(self, atom: Atom, type_: str) -> Truths:
        """Whether an operand of a type counts as true."""
        if isinstance(atom, Constant):
            return frozenset((atom.value is not False and atom.value is not NIL,))
        if type_ == "bool":
            return self.truths.get(atom, EITHER) or self.not_computed()
        if type_ in ("none", "nil"):
            return self.not_computed() if type_ == "none" else frozenset((False,))
        return frozenset((True,)) if type_ in TRUE else EITHER

    def not_computed(self) -> Truths:
        self.met_unknown = True
        return self.unknown


def satisfied(name: str, type_: str) -> Truths:
    """Whether values of a type satisfy a predicate."""
    if type_ in SATISFIED[name]:
        return frozenset((True,))
    return frozenset((False,)) if type_ in DISJOINT else EITHER


def _is_repeated(loop: ir.Loop) -> bool:
    inside = ir.statements(loop.body)
    return any(isinstance(each, ir.Continue) and each.label == loop.label for each in inside)


def without_dead_branches(block: Block, branches: Branches) -> Block:
    """A block without the branches that are never taken, nor what follows a jump then."""
    kept: Block = []
    for each in block:
        if isinstance(each, ir.If):
            type_ = each.test.type if isinstance(each.test, Variable) else ""
            truths = branches.of(each.test, type_)
            each.then = without_dead_branches(each.then, branches)
            each.otherwise = without_dead_branches(each.otherwise, branches)
            if len(truths) == 1:
                kept += each.then if True in truths else each.otherwise
            else:
                kept.append(each)
        else:
            if isinstance(each, ir.Loop):
                each.body = without_dead_branches(each.body, branches)
            if isinstance(each, ir.Loop) and not _is_repeated(each):
                kept += each.body
            else:
                kept.append(each)
        if ir.leaves(kept):
            break
    return kept
