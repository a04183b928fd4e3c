"""Ownership: who releases each value, and when.

A function owns its parameters but for those that `borrow` found it only looks at; primitives borrow;
calls, containers, closures and `return` take over. Read backwards, a
value's last use is where it moves or where a `Drop` follows; an earlier use that takes over needs a `Dup`. A
branch that does
not need a value drops it first, and an operation that fails drops what is owned then: `on_error`.
"""

from __future__ import annotations

from tenfold.purple import ir
from tenfold.purple.borrow import borrow
from tenfold.purple.cells import reuse_cells
from tenfold.purple.ir import Atom, Block, Drop, Dup, Function, Let, Variable
from tenfold.purple.lend import lend
from tenfold.purple.parts import specialised
from tenfold.purple.reuse import reuse
from tenfold.purple.unique import find_unique

Live = frozenset[Variable]


def own(module: ir.Module) -> None:
    """Add the dups and drops of every function."""
    writing = borrow(module)
    functions = [*module.functions, module.main]
    for function in functions:
        Ownership(function).run()
        function.body = specialised(function.body)
        lend(function, writing)
        reuse(function)
    find_unique(module)
    number = max((var.number for each in functions for var in _variables(each)), default=0)
    for function in functions:
        number = reuse_cells(function, number)
        function.changed()


class Ownership:
    """One function, read backwards: `block` gives the new statements and what is live before them."""

    def __init__(self, function: Function):
        self.function = function
        self.headers: dict[str, Live] = {}

    def run(self) -> None:
        body, live = self.block(self.function.body, frozenset())
        unused = [p for p in self.function.all_params if p.is_managed and p not in live]
        place = self.function.place
        self.function.body = [*(Drop(p, "a parameter that is not used", place) for p in unused), *body]

    def block(self, block: Block, live: Live) -> tuple[Block, Live]:
        out: Block = []  # backwards
        for each in reversed(block):
            live = self.statement(each, live, out)
        out.reverse()
        return out, live

    def statement(self, each: ir.Statement, live: Live, out: Block) -> Live:
        match each:
            case Let():
                return self.let(each, live, out)
            case ir.LetTry():
                for result in (each.var, each.ok):
                    if result.is_managed and result not in live:
                        out.append(Drop(result, "never used", each.place))
                after = live - {each.var, each.ok}
                owned = [not param.borrowed for param in each.function.all_params]
                borrowed = self.managed([a for a, o in zip(each.args, owned) if not o])
                drops = self.drops(borrowed - after, f"last used at line {each.place.line}", each.place)
                out.extend(reversed(drops))
                out.append(each)
                kept = after | borrowed
                return kept | self.take(each.args, owned, kept, out)
            case ir.If():
                then, live_then = self.block(each.then, live)
                otherwise, live_else = self.block(each.otherwise, live)
                tested = self.managed([each.test])
                whole = live_then | live_else | tested
                then[:0] = self.drops(whole - live_then, "not needed in this branch", each.place)
                otherwise[:0] = self.drops(whole - live_else, "not needed in this branch", each.place)
                out.append(ir.If(each.test, then, otherwise, each.place))
                return whole
            case ir.Loop():
                header: Live = frozenset()
                while True:
                    self.headers[each.label] = header
                    body, before = self.block(each.body, live)
                    if before == header:
                        break
                    header |= before
                out.append(ir.Loop(each.label, body))
                return header
            case ir.Continue():
                out.append(each)
                return self.headers[each.label]
            case ir.Return():
                out.append(each)
                return self.managed([each.value])
            case ir.TailCall():
                out.append(each)
                owned = [not param.borrowed for param in each.function.all_params]
                return self.take(each.args, owned, frozenset(), out)
            case ir.TailClosure():
                out.append(each)
                return self.take(each.args, [True] * len(each.args), frozenset(), out)
        raise TypeError(each)

    def let(self, each: Let, live: Live, out: Block) -> Live:
        after = live - {each.var}
        is_lent = each.var.lender is not None or each.var.borrowed
        looks = is_lent and not isinstance(each.op, ir.CallKnown)
        owned = [False] * len(each.op.args) if looks else each.op.owned()
        borrowed = self.managed([a for a, o in zip(each.op.args, owned) if not o])
        dying = borrowed - after
        drops = self.drops(dying, f"last used at line {each.place.line}", each.place)
        out.extend(reversed(drops))
        if each.var.is_managed and each.var not in live:  # before its operands: it may be lent by one
            out.append(Drop(each.var, "never used", each.place))
        made = Let(each.var, each.op, each.place, ordered(after | borrowed))
        out.append(made)
        taken = self.take(each.op.args, owned, after | borrowed, out)
        return after | borrowed | taken

    def take(self, args: list[Atom], owned: list[bool], kept: Live, out: Block) -> Live:
        """Dup what is taken over and needed again; the rest moves."""
        moved: set[Variable] = set()
        for arg, takes in zip(args, owned):
            if takes and isinstance(arg, Variable) and arg.is_managed:
                if arg in kept or arg in moved:
                    out.append(Dup(arg))
                moved.add(arg)
        return frozenset(moved)

    def managed(self, atoms: list[Atom]) -> Live:
        """The variables that must be owned where these are looked at: they, or who lends them."""
        holders = [a if a.lender is None else a.lender for a in atoms if isinstance(a, Variable)]
        return frozenset(holder for holder in holders if holder.is_managed)

    def drops(self, dead: Live, reason: str, place: ir.Place) -> Block:
        return [Drop(var, reason, place) for var in ordered(dead)]


def _variables(function: Function) -> list[Variable]:
    lets = [statement.var for statement in function.statements() if isinstance(statement, Let | ir.LetTry)]
    return function.all_params + lets


def ordered(live: Live) -> tuple[Variable, ...]:
    return tuple(sorted(live, key=lambda var: var.number))
