"""From the core language to A-normal form: operands become variables, lambdas become functions that take what
they capture as
further parameters, loops become loops, and conditionals join through a variable that both branches define.
"""

from __future__ import annotations

from tenfold.purple import core, ir
from tenfold.purple.anf_calls import Calls
from tenfold.purple.anf_variables import TAIL, UNDEFINED, Lowering, Target
from tenfold.purple.captures import is_handler
from tenfold.purple.core import NOWHERE, Expr, Lambda, Var
from tenfold.purple.ir import Atom, Constant, Function, Let, Variable
from tenfold.purple.values import UNSPECIFIED


def lower(program: core.Program) -> ir.Module:
    """The whole program as functions of statements."""
    shared = Lowering(program)
    main = Function("main", shared.unique("top level"), NOWHERE, None)
    body = FunctionLowering(shared, main)
    for form in program.forms:
        body.form(form)
    body.block.append(ir.Return(Constant(UNSPECIFIED)))
    main.body = body.block
    while shared.waiting:
        function, code, definition = shared.waiting.pop()
        FunctionLowering(shared, function).run(code, definition)
    names = [f.name for f in program.forms if isinstance(f, core.Define)]
    kept = shared.scopes.global_lambdas.keys() | shared.scopes.top_level
    stored = [name for name in dict.fromkeys(names) if name not in kept]
    shared.functions.sort(key=lambda f: (f.place.file != program.file, f.place.line, f.place.column, f.cname))
    return ir.Module(program, shared.functions, main, stored, list(shared.primitives))


class FunctionLowering(Calls):
    """One function, statement by statement."""

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
        for var, param in boxed:
            if not (definition is not None and any(var is each for _, each, _ in definition.keywords)):
                self._to_cell(var, param)  # before the defaults, which may read it
        for _, var, default in definition.keywords if definition is not None else ():
            self._default(self.variables[var], var, default)
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
                for expr in node.exprs[:-1]:
                    self.lower(expr, None)
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

    def _if(self, node: core.If, target: Target) -> None:
        test = self.atom(node.test)
        branches = []
        outer = self.block
        for branch in (node.then, node.otherwise):
            self.block = []
            self.lower(branch, target)
            branches.append(self.block)
        self.block = outer
        self.block.append(ir.If(test, branches[0], branches[1], node.test.place))

    def _while(self, node: core.While) -> None:
        loop = ir.Loop(self.program.unique("while"), [])
        outer, self.block = self.block, loop.body
        test = self.atom(node.test)
        body: ir.Block = []
        self.block.append(ir.If(test, body, [], node.test.place))
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
