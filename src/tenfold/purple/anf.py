"""From the core language to A-normal form: operands become variables, lambdas become functions that take what
they capture as
further parameters, loops become loops, and conditionals join through a variable that both branches define.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from tenfold.purple import core, ir
from tenfold.purple.captures import Scopes, is_handler, is_plain
from tenfold.purple.core import NOWHERE, Expr, Lambda, Place, Var
from tenfold.purple.ir import Atom, Constant, Function, Let, Variable
from tenfold.purple.values import NIL, UNSPECIFIED

# Where a value goes: it is the function's own ("tail"), it defines a variable, or nobody wants it.
Target: TypeAlias = Variable | str | None
TAIL = "tail"


class Undefined:
    """The content of a variable whose definition has not run."""


UNDEFINED = Undefined()


def lower(program: core.Program) -> ir.Module:
    """The whole program as functions of statements."""
    return Lowering(program).module()


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

    def module(self) -> ir.Module:
        main = Function("main", self.unique("top level"), NOWHERE, None)
        body = FunctionLowering(self, main)
        for form in self.program.forms:
            body.form(form)
        body.block.append(ir.Return(Constant(UNSPECIFIED)))
        main.body = body.block
        while self.waiting:
            function, code, definition = self.waiting.pop()
            FunctionLowering(self, function).run(code, definition)
        names = [f.name for f in self.program.forms if isinstance(f, core.Define)]
        kept = self.scopes.global_lambdas.keys() | self.scopes.top_level
        stored = [name for name in dict.fromkeys(names) if name not in kept]
        self.functions.sort(
            key=lambda f: (f.place.file != self.program.file, f.place.line, f.place.column, f.cname)
        )
        return ir.Module(self.program, self.functions, main, stored, list(self.primitives))

    def unique(self, name: str) -> str:
        """A name for a C function that no other has."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", core.shown(name).replace("->", "_to_").replace("?", "_p"))
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
            made = Function(name, self.unique(name), owner.place, definition)
            made.captured = [
                self.variable(v.name, owner.place, v) for v in self.scopes.free.get(id(owner), [])
            ]
            self.made[id(owner)] = made
            self.functions.append(made)
            self.waiting.append((made, owner.body, definition))
        return made


class FunctionLowering:
    """One function, statement by statement."""

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

    def run(self, code: Expr, definition: Lambda | None) -> None:
        function = self.function
        boxed: list[tuple[Var, Variable]] = []
        if definition is not None:
            rest = [definition.rest] if definition.rest else []
            for var in [*definition.params, *rest, *(var for _, var, _ in definition.keywords)]:
                param = self.program.variable(var.name, definition.place, var)
                function.params.append(param)
                self.variables[var] = param
                if var in self.scopes.cells:
                    boxed.append((var, param))
        self.self_label = f"again_{function.cname}"
        loop = ir.Loop(self.self_label, [])
        self.block = loop.body
        for _, var, default in definition.keywords if definition is not None else ():
            self._default(self.variables[var], var, default)
        for var, param in boxed:
            if not (definition is not None and any(var is each for _, each, _ in definition.keywords)):
                self._to_cell(var, param)
        self.lower(code, TAIL)
        jumps = any(isinstance(s, ir.Continue) and s.label == loop.label for s in ir.statements(loop.body))
        function.body = [loop] if jumps else loop.body

    def _default(self, param: Variable, var: Var, default: Expr | None) -> None:
        """A keyword parameter that was not given takes its default, which sees the parameters before it."""
        if default is not None:
            absent = self.temporary("absent", default.place)
            self.block.append(Let(absent, ir.IsAbsent([param]), default.place))
            outer, self.block = self.block, []
            value = self.atom(default)
            self.block.append(Let(param, ir.Copy([value]), default.place))
            outer.append(ir.If(absent, self.block, [], default.place))
            self.block = outer
        if var in self.scopes.cells:
            self._to_cell(var, param)

    def _to_cell(self, var: Var, content: Atom) -> None:
        cell = self.program.variable(var.name, self.function.place, var)
        self.block.append(Let(cell, ir.Prim([content], "box"), self.function.place))
        self.variables[var] = cell

    def temporary(self, name: str, place: Place) -> Variable:
        return self.program.variable(name, place)

    # The top level

    def form(self, form: core.Form) -> None:
        match form:
            case core.Define():
                if form.name in self.scopes.global_lambdas:
                    self.program.function(self.scopes.global_lambdas[form.name], form.name)
                    return
                value = self.atom(form.value)
                if form.name in self.scopes.top_level:
                    name = core.shown(form.name)
                    if isinstance(value, Variable) and not self._is_assigned(form.name):
                        if value.origin is None and value not in self.top_level.values():
                            value.name = name
                        self.top_level[form.name] = value
                        return
                    self.top_level[form.name] = self.program.variable(name, form.place)
                self._store(form.name, value, form.place)
            case core.DefType() | core.Ffi():
                pass
            case _:
                self.lower(form, None)

    def _is_assigned(self, name: str) -> bool:
        return self.program.program.globals[name].assigned

    def _store(self, name: str, value: Atom, place: Place) -> None:
        if name in self.top_level:
            self.block.append(Let(self.top_level[name], ir.Copy([value]), place))
            return
        self.block.append(Let(self.temporary("stored", place), ir.StoreGlobal([value], name), place))

    # Expressions

    def lower(self, node: Expr, target: Target) -> None:
        """Add the statements that compute an expression and bring its value to the target."""
        match node:
            case core.Literal():
                self.deliver(Constant(node.value), target, node.place)
            case core.Local() | core.Global() | core.PrimRef() | Lambda():
                if target is not None or isinstance(node, core.Global | core.Local):
                    self.deliver(self.atom(node), target, node.place)
            case core.SetLocal():
                self._assign(node.var, self.atom(node.value), node.place)
                self.deliver(Constant(UNSPECIFIED), target, node.place)
            case core.SetGlobal():
                self._set_global(node)
                self.deliver(Constant(UNSPECIFIED), target, node.place)
            case core.Call():
                self._call(node, target)
            case core.Prim():
                self._prim(node, target)
            case core.If():
                self._if(node, target)
            case core.Let():
                bound = [self._binding(var, value) for var, value in node.bindings]
                for (var, value), atom in zip(node.bindings, bound):
                    if atom is not None:
                        self._bind(var, atom, value.place)
                self.lower(node.body, target)
            case core.Letrec():
                self._letrec(node, target)
            case core.Seq():
                for each in node.exprs[:-1]:
                    self.lower(each, None)
                self.lower(node.exprs[-1], target)
            case core.While():
                self._while(node)
                self.deliver(Constant(UNSPECIFIED), target, node.place)
            case core.Try():
                self._try(node, target)
            case core.With():
                given = [self.atom(node.argument)] if node.argument is not None else []
                for name in given:
                    self.block.append(
                        Let(self.temporary("fits", node.place), ir.Prim([name], "%check-device"), node.place)
                    )
                function = self.program.function(node, f"with-{node.kind}")
                self.result(
                    ir.CallWithin(given + self._captured(function), node.kind, function), target, node.place
                )
            case core.MakeRecord():
                atoms = self.atoms(node.arguments)
                for i, (field, item) in enumerate(zip(node.type.fields, atoms)):
                    if field.type != "any":
                        check = ir.CheckField([item], node.type, i)
                        self.block.append(Let(self.temporary("fits", node.place), check, node.place))
                self.result(ir.MakeRecord(atoms, node.type), target, node.place)
            case core.FieldRef():
                self.result(ir.FieldRef([self.atom(node.record)], node.type, node.index), target, node.place)
            case core.SetField():
                atoms = self.atoms((node.record, node.value))
                self.result(ir.SetField(atoms, node.type, node.index), target, node.place)
            case core.IsRecord():
                self.result(ir.IsRecord([self.atom(node.value)], node.type), target, node.place)
            case core.ForeignCall():
                self.result(ir.Foreign(self.atoms(node.arguments), node.declaration), target, node.place)

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
        return [self.atom(each) for each in nodes]

    def atom(self, node: Expr) -> Atom:
        """An expression's value as an operand."""
        match node:
            case core.Literal():
                return Constant(node.value)
            case core.Local():
                return self._local(node)
            case core.Global() if node.name in self.scopes.global_lambdas:
                return self._closure(
                    self.program.function(self.scopes.global_lambdas[node.name], node.name), node.place
                )
            case core.Global():
                value = self.temporary(core.shown(node.name), node.place)
                if node.name in self.top_level:
                    if not self._is_assigned(node.name):
                        return self.top_level[node.name]
                    self.block.append(Let(value, ir.Copy([self.top_level[node.name]]), node.place))
                    return value
                self.block.append(Let(value, ir.LoadGlobal([], node.name), node.place))
                return value
            case core.PrimRef():
                self.program.primitives[node.name] = None
                value = self.temporary("primitive", node.place)
                self.block.append(Let(value, ir.PrimClosure([], node.name), node.place))
                return value
            case Lambda():
                return self._closure(self.program.function(node, node.name), node.place)
        value = self.temporary("t", node.place)
        self.lower(node, value)
        return value

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
            return self._closure(self.program.function(self.scopes.known[var], var.name), node.place)
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

    # Variables

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

    def _letrec(self, node: core.Letrec, target: Target) -> None:
        for var, value in node.bindings:
            if var in self.scopes.late:
                self._bind(var, Constant(UNDEFINED), value.place)
        for var, value in node.bindings:
            if var in self.scopes.late:
                self._assign(var, self.atom(value), value.place)
            elif var not in self.scopes.known:
                self._bind(var, self.atom(value), value.place)
        self.lower(node.body, target)

    # Control

    def _if(self, node: core.If, target: Target) -> None:
        test = self.atom(node.test)
        branches = []
        outer = self.block
        for branch in (node.then, node.otherwise):
            self.block = []
            self.lower(branch, target)
            branches.append(self.block)
        self.block = outer
        self.block.append(ir.If(test, branches[0], branches[1], node.place))

    def _while(self, node: core.While) -> None:
        loop = ir.Loop(self.program.unique("while"), [])
        outer, self.block = self.block, loop.body
        test = self.atom(node.test)
        body: ir.Block = []
        self.block.append(ir.If(test, body, [], node.place))
        self.block = body
        self.lower(node.body, None)
        self.block.append(ir.Continue(loop.label))
        self.block = outer
        self.block.append(loop)

    def _try(self, node: core.Try, target: Target) -> None:
        function = self.program.function(node, "try")
        ok, var = self.temporary("ok", node.place), self.temporary("tried", node.place)
        self.block.append(ir.LetTry(ok, var, function, self._captured(function), node.place))
        outer, self.block = self.block, []
        self.deliver(var, target, node.place)
        then = self.block
        self.block = []
        if is_handler(node.handler):
            self._bind(node.handler.params[0], var, node.place)
            self.lower(node.handler.body, target)
        else:
            self._closure_call([self.atom(node.handler), var], (), target, node.handler.place)
        outer.append(ir.If(ok, then, self.block, node.place))
        self.block = outer

    # Calls

    def _call(self, node: core.Call, target: Target) -> None:
        called = node.function
        if isinstance(called, core.Local) and called.var in self.scopes.loops:
            self._loop_call(called.var, node, target)
            return
        if isinstance(called, Lambda) and is_plain(called, node):
            for var, atom in zip(called.params, self.atoms(node.arguments)):
                self._bind(var, atom, node.place)
            self.lower(called.body, target)
            return
        function = None
        if isinstance(called, core.Local) and called.var in self.scopes.known:
            function = (called.var.name, self.scopes.known[called.var])
        elif isinstance(called, core.Global) and called.name in self.scopes.global_lambdas:
            function = (called.name, self.scopes.global_lambdas[called.name])
        if function is not None and fits(function[1], node):
            self._known_call(self.program.function(function[1], function[0]), function[1], node, target)
            return
        procedure = self.atom(called)
        atoms = self.atoms([*node.arguments, *(value for _, value in node.keywords)])
        self._closure_call([procedure, *atoms], tuple(k for k, _ in node.keywords), target, node.place)

    def _closure_call(
        self, args: list[Atom], keywords: tuple[str, ...], target: Target, place: Place
    ) -> None:
        if target == TAIL:
            self.block.append(ir.TailClosure(args, keywords, place))
        else:
            self.result(ir.CallClosure(args, keywords), target, place)

    def _known_call(self, function: Function, definition: Lambda, node: core.Call, target: Target) -> None:
        atoms = self.atoms(node.arguments)
        given = {keyword: self.atom(value) for keyword, value in node.keywords}
        count = len(definition.params)
        args, more = atoms[:count], atoms[count:]
        if definition.rest is not None:
            rest: Atom = Constant(NIL)
            if more:
                rest = self.temporary(definition.rest.name, node.place)
                self.block.append(Let(rest, ir.Prim(more, "list"), node.place))
            args = [*args, rest]
        args = [*args, *(given.get(keyword, Constant(ABSENT)) for keyword, _, _ in definition.keywords)]
        if target == TAIL and function is self.function:
            self._jump(self.self_label, function.params, args, node.place)
            return
        args += self._captured(function)
        if target == TAIL:
            self.block.append(ir.TailCall(function, args, node.place))
        else:
            self.result(ir.CallKnown(args, function), target, node.place)

    def _jump(self, label: str, params: list[Variable], args: list[Atom], place: Place) -> None:
        """Give a loop's parameters their next values, all at once, and start it again."""
        moved: list[Atom] = []
        for param, arg in zip(params, args):
            if arg is not param and isinstance(arg, Variable) and arg in params:
                held = self.temporary(param.name, place)
                self.block.append(Let(held, ir.Copy([arg]), place))
                arg = held
            moved.append(arg)
        for param, arg in zip(params, moved):
            if arg is not param:
                self.block.append(Let(param, ir.Copy([arg]), place))
        self.block.append(ir.Continue(label))

    def _loop_call(self, var: Var, node: core.Call, target: Target) -> None:
        atoms = self.atoms(node.arguments)
        if var in self.loops:
            label, params = self.loops[var]
            self._jump(label, params, atoms, node.place)
            return
        definition = self.scopes.loops[var]
        params = [self.program.variable(v.name, definition.place, v) for v in definition.params]
        for param, atom in zip(params, atoms):
            self.block.append(Let(param, ir.Copy([atom]), node.place))
        loop = ir.Loop(self.program.unique(f"loop_{var.name}"), [])
        outer, self.block = self.block, loop.body
        self.loops[var] = (loop.label, params)
        for v, param in zip(definition.params, params):
            self.variables[v] = param
            if v in self.scopes.cells:
                self._to_cell(v, param)
        self.lower(definition.body, target)
        del self.loops[var]
        self.block = outer
        self.block.append(loop)

    # Primitives

    def _extends_own_result(self, node: core.Prim) -> bool:
        """Whether the node is (cons X (this-function …)), and if so its code: a turn of a loop that adds to a
        list whose
        end is open, in place of a call that waits for its rest."""
        definition = self.function.definition
        if definition is None or len(node.arguments) != 2 or node.keywords:
            return False
        first, call = node.arguments
        if not isinstance(call, core.Call) or not is_plain(definition, call):
            return False
        match call.function:
            case core.Local(var=var) if (
                self.scopes.known.get(var) is definition and var not in self.scopes.loops
            ):
                pass
            case core.Global(name=name) if self.scopes.global_lambdas.get(name) is definition:
                pass
            case _:
                return False
        item = self.atom(first)
        args = self.atoms(call.arguments)
        self.function.has_hole = True
        self.block.append(Let(self.temporary("unused", node.place), ir.Prim([item], "%hole"), node.place))
        self._jump(self.self_label, self.function.params, args, node.place)
        return True

    def _prim(self, node: core.Prim, target: Target) -> None:
        if target == TAIL and node.name == "cons" and self._extends_own_result(node):
            return
        atoms = self.atoms(node.arguments)
        atoms += [self.atom(value) for _, value in node.keywords]
        keywords = tuple(keyword for keyword, _ in node.keywords)
        name, place = node.name, node.place
        if name == "apply" and len(atoms) >= 2 and target == TAIL:
            name = "%apply-tail"
        if name in FOLDED and len(atoms) > 2 and not keywords:
            first = atoms[0]
            for second in atoms[1:-1]:
                partial = self.temporary("partial", place)
                self.block.append(Let(partial, ir.Prim([first, second], name), place))
                first = partial
            atoms = [first, atoms[-1]]
        self.result(ir.Prim(atoms, name, keywords), target, place)


# Operators of many arguments that are the same as one after another.
FOLDED = ("+", "-", "*", "/")


class Absent:
    """What a keyword parameter holds when a call does not give it."""


ABSENT = Absent()


def fits(definition: Lambda, call: core.Call) -> bool:
    """Whether a call of a known function has the arguments that it needs."""
    count, given = len(call.arguments), {keyword for keyword, _ in call.keywords}
    enough = count >= len(definition.params) if definition.rest else count == len(definition.params)
    names = {keyword for keyword, _, _ in definition.keywords}
    required = {keyword for keyword, _, default in definition.keywords if default is None}
    return enough and given <= names and required <= given and len(given) == len(call.keywords)
