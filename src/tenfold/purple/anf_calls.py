"""Calls in A-normal form: of loops, which jump; of known functions; of procedures that show only when the
program runs; and of primitives."""

from __future__ import annotations

from tenfold.purple import core, ir
from tenfold.purple.anf_variables import TAIL, Target, Variables
from tenfold.purple.captures import is_plain
from tenfold.purple.core import Lambda, Place, Var
from tenfold.purple.ir import Atom, Constant, Function, Let, Variable
from tenfold.purple.values import NIL


class Calls(Variables):
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
            function = (self.scopes.known[called.var].name, self.scopes.known[called.var])
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
        args = [
            *args,
            *(given.get(keyword) or absent(default) for keyword, _, default in definition.keywords),
        ]
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
        applied = core.applied_primitive(node)
        if name == "apply" and len(atoms) >= 2 and target == TAIL and not applied:
            name = "%apply-tail"
        if name in FOLDED and len(atoms) > 2 and not keywords:
            first = atoms[0]
            for second in atoms[1:-1]:
                partial = self.temporary("partial", place)
                self.block.append(Let(partial, ir.Prim([first, second], name), place))
                first = partial
            atoms = [first, atoms[-1]]
        chosen = bool(node.arguments) and core.is_chosen(node.arguments[0])
        op = ir.Prim(atoms, name, keywords, applied=applied, chosen=chosen)
        self.result(op, target, place)


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


def absent(default: core.Expr | None) -> Constant:
    """What a call passes for a keyword that it does not give: its default, where that is a literal."""
    return Constant(default.value if isinstance(default, core.Literal) else ABSENT)
