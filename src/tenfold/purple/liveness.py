"""Liveness: which variables a function may still look at after each of its calls."""

from __future__ import annotations

from typing import TypeAlias

from tenfold.purple import ir
from tenfold.purple.ir import Atom, Block, Function, Let, Variable

Live: TypeAlias = frozenset[Variable]
LiveAfter: TypeAlias = dict[int, Live]  # by the ids of statements


def live_after_calls(function: Function) -> LiveAfter:
    """By the ids of the statements that call: the variables that are read afterwards on some path."""
    liveness = Liveness()
    liveness.block(function.body, frozenset())
    return liveness.after


class Liveness:
    """One function, read backwards."""

    def __init__(self) -> None:
        self.after: LiveAfter = {}
        self.headers: dict[str, Live] = {}

    def block(self, block: Block, live: Live) -> Live:
        for each in reversed(block):
            live = self.statement(each, live)
        return live

    def statement(self, each: ir.Statement, live: Live) -> Live:
        """What is live before a statement, by what is live after it."""
        match each:
            case Let():
                self.after[id(each)] = live - {each.var}
                return (live - {each.var}) | _variables(each.op.args)
            case ir.LetTry():
                self.after[id(each)] = live - {each.var, each.ok}
                return (live - {each.var, each.ok}) | _variables(each.args)
            case ir.If():
                return (
                    self.block(each.then, live) | self.block(each.otherwise, live) | _variables([each.test])
                )
            case ir.Loop():
                header: Live = frozenset()
                while True:
                    self.headers[each.label] = header
                    before = self.block(each.body, live)
                    if before <= header:
                        return header
                    header |= before
            case ir.Continue():
                return self.headers[each.label]
            case ir.Return():
                return _variables([each.value])
            case ir.TailCall() | ir.TailClosure():
                self.after[id(each)] = frozenset()
                return _variables(each.args)
        raise TypeError(each)


def _variables(atoms: list[Atom]) -> Live:
    return frozenset(atom for atom in atoms if isinstance(atom, Variable))
