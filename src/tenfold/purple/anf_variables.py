"""What the lowering of a function knows: the program around it, its statements so far, and where each
variable of the source is: in one of its own, in a cell that closures share, or among the globals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from tenfold.purple import core, ir
from tenfold.purple.captures import Scopes
from tenfold.purple.core import PRELUDE_FILE, Expr, Lambda, Place, Var
from tenfold.purple.ir import Atom, Function, Let, Variable

# Where a value goes: it is the function's own ("tail"), it defines a variable, or nobody wants it.
Target: TypeAlias = Variable | str | None
TAIL = "tail"


class Undefined:
    """The content of a variable whose definition has not run."""


UNDEFINED = Undefined()


class Lowering:
    """What the functions of a program share."""

    def __init__(self, program: core.Program):
        self.program = program
        self.scopes = Scopes(program)
        self.functions: list[Function] = []
        self.waiting: list[tuple[Function, Expr, Lambda | None]] = []
        self.made: dict[int, Function] = {}
        self.names: set[str] = set()
        self.count = 0
        self.primitives: dict[str, None] = {}

    def unique(self, name: str, file: str = "") -> str:
        """A name for a C function that no other has. Those of an imported file begin with its name: they stay
        what they are when another file changes."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", core.shown(name).replace("->", "_to_").replace("?", "_p"))
        file = file.removesuffix(core.DERIVED)
        if file not in ("", self.program.file, PRELUDE_FILE):
            plain = re.sub(r"[^A-Za-z0-9_]", "_", Path(file).stem) + "_" + plain
        plain = f"p_{plain}"  # so that it is none of C's own
        candidate, n = plain, 1
        while candidate in self.names:
            n += 1
            candidate = f"{plain}_{n}"
        self.names.add(candidate)
        return candidate

    def variable(self, name: str, place: Place, origin: Var | None = None) -> Variable:
        self.count += 1
        return Variable(name, self.count, place, origin)

    def function(self, owner: Lambda | core.Try | core.With, name: str) -> Function:
        """The function that a lambda, or a body which must be left in one way, becomes."""
        made = self.made.get(id(owner))
        if made is None:
            definition = owner if isinstance(owner, Lambda) else None
            made = Function(name, self.unique(name, owner.place.file), owner.place, definition)
            made.captured = [
                self.variable(v.name, owner.place, v) for v in self.scopes.free.get(id(owner), [])
            ]
            self.made[id(owner)] = made
            self.functions.append(made)
            self.waiting.append((made, owner.body, definition))
        return made


class Variables:
    """One function, while it is lowered."""

    def __init__(self, program: Lowering, function: Function):
        self.program, self.function, self.scopes = program, function, program.scopes
        self.block: ir.Block = []
        self.variables: dict[Var, Variable] = {}
        self.loops: dict[
            Var, tuple[str, list[Variable]]
        ] = {}  # the loops around the statement that is lowered
        self.self_label = ""
        self.top_level: dict[str, Variable] = {}  # globals that are variables of this code alone
        for captured in function.captured:
            assert captured.origin is not None
            self.variables[captured.origin] = captured

    def temporary(self, name: str, place: Place) -> Variable:
        return self.program.variable(name, place)

    def deliver(self, atom: Atom, target: Target, place: Place) -> None:
        if isinstance(target, Variable):
            self.block.append(Let(target, ir.Copy([atom]), place))
        elif target == TAIL:
            self.block.append(ir.Return(atom))

    def result(self, op: ir.Op, target: Target, place: Place) -> None:
        """Bring what an operation gives to the target."""
        if isinstance(target, Variable):
            self.block.append(Let(target, op, place))
            return
        var = self.temporary("result" if target == TAIL else "unused", place)
        self.block.append(Let(var, op, place))
        if target == TAIL:
            self.block.append(ir.Return(var))

    def atoms(self, nodes: Sequence[Expr]) -> list[Atom]:
        return [self.atom(node) for node in nodes]

    def _to_cell(self, var: Var, content: Atom) -> None:
        cell = self.program.variable(var.name, self.function.place, var)
        self.block.append(Let(cell, ir.Prim([content], "box"), self.function.place))
        self.variables[var] = cell

    def _closure(self, function: Function, place: Place) -> Variable:
        function.escapes = True
        value = self.temporary("procedure", place)
        self.block.append(Let(value, ir.MakeClosure(self._captured(function), function), place))
        return value

    def _captured(self, function: Function) -> list[Atom]:
        return [self.variables[var.origin] for var in function.captured if var.origin is not None]

    def _local(self, node: core.Local) -> Atom:
        var = node.var
        if var in self.scopes.known:
            known = self.scopes.known[var]
            return self._closure(self.program.function(known, known.name), node.place)
        value: Atom = self.variables[var]
        if var in self.scopes.cells:
            content = self.temporary(var.name, node.place)
            self.block.append(Let(content, ir.Prim([value], "unbox"), node.place))
            value = content
        elif var.assigned or var in self.scopes.late:
            # Another operand of the same call may assign it.
            copy = self.temporary(var.name, node.place)
            self.block.append(Let(copy, ir.Copy([value]), node.place))
            value = copy
        if var in self.scopes.late:
            self.block.append(
                Let(self.temporary("defined", node.place), ir.Defined([value], var.name), node.place)
            )
        return value

    def _binding(self, var: Var, value: Expr) -> Atom | None:
        """The value of a `let`, or None for a function that is known wherever it is used."""
        return None if var in self.scopes.known else self.atom(value)

    def _bind(self, var: Var, atom: Atom, place: Place) -> None:
        if var in self.scopes.cells:
            self._to_cell(var, atom)
            return
        if isinstance(atom, Variable) and not (var.assigned or var in self.scopes.late):
            if atom.origin is None:
                atom.name, atom.origin = var.name, var
            self.variables[var] = atom
            return
        bound = self.program.variable(var.name, place, var)
        self.block.append(Let(bound, ir.Copy([atom]), place))
        self.variables[var] = bound

    def _assign(self, var: Var, atom: Atom, place: Place) -> None:
        if var in self.scopes.cells:
            change = ir.Prim([self.variables[var], atom], "set-box!")
            self.block.append(Let(self.temporary("unused", place), change, place))
        else:
            self.block.append(Let(self.variables[var], ir.Copy([atom]), place))

    def _is_assigned(self, name: str) -> bool:
        return self.program.program.globals[name].assigned

    def _store(self, name: str, value: Atom, place: Place) -> None:
        if name in self.top_level:
            self.block.append(Let(self.top_level[name], ir.Copy([value]), place))
            return
        self.block.append(Let(self.temporary("stored", place), ir.StoreGlobal([value], name), place))

    def _set_global(self, node: core.SetGlobal) -> None:
        value = self.atom(node.value)
        if node.name in self.top_level:
            self._store(node.name, value, node.place)
            return
        old = self.temporary(core.shown(node.name), node.place)
        self.block.append(
            Let(old, ir.LoadGlobal([], node.name), node.place)
        )  # fails where it is not defined yet
        self._store(node.name, value, node.place)

    def lower(self, node: Expr, target: Target) -> None:
        """Add the statements that compute an expression and bring its value to the target."""
        raise NotImplementedError

    def atom(self, node: Expr) -> Atom:
        """An expression's value as an operand."""
        raise NotImplementedError
