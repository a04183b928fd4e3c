"""From the core language to Python's syntax trees, which Python compiles.

A lambda becomes a Python function, a variable a Python variable; every node keeps its line and column in
the Purple file, so that a traceback names Purple's own places at no cost while nothing fails. Tail
calls: a call of oneself is a jump to the top of a loop, a call of a function that cannot come back is a
plain `return f(x)`, and any other gives back a `Tail` for the nearest caller that is not in tail
position to run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tenfold.purple import core
from tenfold.purple.conditions import is_boolean
from tenfold.purple.core import Call, Expr, Lambda, Literal, Place, Prim, Var
from tenfold.purple.flow import Facts
from tenfold.purple.inline import COMPARISONS, Primitives
from tenfold.purple.python_ast import Unit, mangle
from tenfold.purple.values import NIL, UNSPECIFIED

RETURN, EFFECT = "return", "effect"  # where a value goes, besides into a variable


def form_module(unit: Unit, form: core.Form) -> ast.Module:
    """A module that defines `top`, a function of no arguments that runs the form."""
    body = Body(unit, None)
    if isinstance(form, core.Define):
        target = unit.global_name(form.name)
        body.declared_global.add(target)
        body.assign(target, body.expr(form.value), form.place)
        body.finish(body.constant(UNSPECIFIED, form.place), RETURN, form.place)
    else:
        assert not isinstance(form, (core.DefType, core.Ffi))
        body.stmt(form, RETURN)
    return ast.Module([body.function("top", [], form.place)], [])


class Body(Primitives):
    """One Python function under way."""

    def __init__(self, unit: Unit, outer: Body | None, function: Lambda | None = None):
        super().__init__(unit)
        self.outer = outer
        self.lambda_ = function
        self.facts: Facts | None = unit.flow.of(function) if function is not None else None
        self.bound: set[Var] = set()
        self.nonlocals: set[str] = set()
        self.declared_global: set[str] = set()
        self.in_while = 0

    def function(self, name: str, parameters: list[Var], place: Place) -> ast.FunctionDef:
        """The finished Python function."""
        function = self.lambda_
        body: list[ast.stmt] = []
        if self.declared_global:
            body.append(self.at(ast.Global(sorted(self.declared_global)), place))
        if self.nonlocals:
            body.append(self.at(ast.Nonlocal(sorted(self.nonlocals)), place))
        body += self.block or [self.at(ast.Pass(), place)]
        argument = lambda each: self.at(ast.arg(each), place)
        arguments = ast.arguments(
            [], [argument(self.variable(each)) for each in parameters], None, [], [], None, []
        )
        if function is not None and function.rest is not None:
            arguments.vararg = argument(self.variable(function.rest))
        if function is not None:
            for keyword, _, default in function.keywords:
                arguments.kwonlyargs.append(argument(keyword_name(keyword)))
                arguments.kw_defaults.append(None if default is None else self.load("MISSING", place))
        made = self.at(ast.FunctionDef(name, arguments, body, []), place)
        made.type_params = []  # which Python 3.12 wants
        return made

    # Values into places

    def finish(self, value: ast.expr, target: str, place: Place) -> None:
        if target == RETURN:
            self.block.append(self.at(ast.Return(value), place))
        elif target == EFFECT:
            if not isinstance(value, (ast.Constant, ast.Name)):
                self.block.append(self.at(ast.Expr(value), place))
        else:
            self.assign(target, value, place)

    def within(self, emit: Callable[[], Any]) -> tuple[list[ast.stmt], Any]:
        """What `emit` adds to an empty block, and what it gives."""
        outer, self.block = self.block, []
        try:
            result = emit()
            return self.block, result
        finally:
            self.block = outer

    def stmt(self, node: Expr, target: str) -> None:
        """Statements that put a node's value into a variable, return it, or forget it."""
        match node:
            case core.If(test, then, otherwise):
                condition = self.test(test)
                yes, _ = self.within(lambda: self.stmt(then, target))
                no, _ = self.within(lambda: self.stmt(otherwise, target))
                if isinstance(condition, ast.Constant):
                    self.block += yes if condition.value else no
                elif yes or no:
                    yes = yes or [self.at(ast.Pass(), node.place)]
                    self.block.append(self.at(ast.If(condition, yes, no), node.place))
                else:
                    self.finish(condition, EFFECT, node.place)
            case core.Let(bindings, body):
                self.let(node, bindings, body, target)
            case core.Letrec(bindings, body):
                for var, _ in bindings:
                    self.bound.add(var)
                for var, value in bindings:
                    self.assign(self.variable(var), self.expr(value), node.place)
                self.stmt(body, target)
            case core.Seq(exprs):
                for each in exprs[:-1]:
                    self.stmt(each, EFFECT)
                self.stmt(exprs[-1], target)
            case core.While():
                self.loop(node)
                self.finish(self.constant(UNSPECIFIED, node.place), target, node.place)
            case core.Try():
                self.attempt(node, target)
            case core.With(kind, argument, body):
                inner = target if target != RETURN else self.temp()
                arguments = [self.python(kind, node.place)] + (
                    [self.expr(argument)] if argument is not None else []
                )
                manager = self.call("within", arguments, node.place)
                block, _ = self.within(lambda: self.stmt(body, inner))
                item = ast.withitem(manager, None)
                self.block.append(
                    self.at(ast.With([item], block or [self.at(ast.Pass(), node.place)]), node.place)
                )
                if target == RETURN:
                    self.finish(self.load(inner, node.place), target, node.place)
            case Call() if target == RETURN:
                self.tail_call(node)
            case core.Global() if target == EFFECT:
                self.block.append(self.at(ast.Expr(self.expr(node)), node.place))  # it may be unbound
            case Prim("apply", arguments) if target == RETURN and len(arguments) > 1:
                first, *others = self.arguments(list(arguments))
                spread = self.call("spread", others, node.place)
                self.finish(
                    self.call("Tail", [first, spread, self.place_constant(node.place)], node.place),
                    target,
                    node.place,
                )
            case _:
                self.finish(self.expr(node), target, node.place)

    def let(self, node: core.Let, bindings: Any, body: Expr, target: str) -> None:
        if self.in_while and any(var.captured for var, _ in bindings):
            # A closure that outlives this round of the loop must not see the next one's variable.
            inner = Body(self.unit, self)
            inner.bound = {var for var, _ in bindings}
            inner.stmt(body, RETURN)
            values = self.arguments([value for _, value in bindings])
            self.unit.count += 1
            name = f"let{self.unit.count}"
            self.block.append(inner.function(name, [var for var, _ in bindings], node.place))
            self.finish(self.force(self.call(name, values, node.place), node.place), target, node.place)
            return
        if len(bindings) == 1:
            var, value = bindings[0]
            self.bound.add(var)
            self.stmt(value, self.variable(var))
        else:
            values = self.arguments([value for _, value in bindings])
            for (var, _), value in zip(bindings, values):
                self.bound.add(var)
                self.assign(self.variable(var), value, node.place)
        self.stmt(body, target)

    def loop(self, node: core.While) -> None:
        self.in_while += 1
        before, condition = self.within(lambda: self.test(node.test))
        body, _ = self.within(lambda: self.stmt(node.body, EFFECT))
        self.in_while -= 1
        place = node.place
        if before:
            leave = self.at(
                ast.If(condition, [self.at(ast.Pass(), place)], [self.at(ast.Break(), place)]), place
            )
            whole = self.at(ast.While(self.python(True, place), [*before, leave, *body], []), place)
        else:
            whole = self.at(ast.While(condition, body or [self.at(ast.Pass(), place)], []), place)
        self.block.append(whole)

    def attempt(self, node: core.Try, target: str) -> None:
        place = node.place
        result, failed, caught = self.temp(), self.temp(), self.temp()
        block, _ = self.within(lambda: self.stmt(node.body, result))
        self.assign(failed, self.python(None, place), place)
        rescue = self.at(
            ast.Assign(
                [self.at(ast.Name(failed, ast.Store()), place)],
                self.at(ast.Call(self.load("caught", place), [self.load(caught, place)], []), place),
            ),
            place,
        )
        handler = self.at(ast.ExceptHandler(self.load("CATCHABLE", place), caught, [rescue]), place)
        self.block.append(self.at(ast.Try(block, [handler], [], []), place))
        # The handler runs outside the `except`, so that its call is a tail call.
        error = self.at(ast.Attribute(self.load(failed, place), "value", ast.Load()), place)

        def handle() -> None:
            function = self.expr(node.handler)
            if target == RETURN:
                arguments = self.at(ast.Tuple([error], ast.Load()), place)
                self.finish(
                    self.call("Tail", [function, arguments, self.place_constant(place)], place), target, place
                )
            else:
                self.finish(
                    self.call("invoke", [function, error, self.place_constant(place)], place), target, place
                )

        rescued, _ = self.within(handle)
        done, _ = self.within(lambda: self.finish(self.load(result, place), target, place))
        nothing = [self.at(ast.Pass(), place)]
        test = self.compare(self.load(failed, place), ast.IsNot, self.python(None, place), place)
        self.block.append(self.at(ast.If(test, rescued or nothing, done), place))

    def tail_call(self, node: Call) -> None:
        place, flow, facts = node.place, self.unit.flow, self.facts
        target = flow.callee(node.function)
        loops = facts is not None and facts.loops and target is self.lambda_ and not node.keywords
        if loops and target is not None and len(node.arguments) == len(target.params):
            self.again(target, node)
            return
        if target is not None and (facts is None or flow.jumps(node, facts)):
            value = self.plain_call(node)
            # `top` is not called by anyone who would run a tail call.
            self.finish(value if facts is not None else self.force(value, place), RETURN, place)
            return
        if facts is None:
            self.finish(self.expr(node), RETURN, place)
            return
        function, *arguments = self.arguments(
            [node.function, *node.arguments, *(value for _, value in node.keywords)]
        )
        if node.keywords:
            named = self.keywords(node, arguments)
            del arguments[len(node.arguments) :]
            self.unit.calls[place.file, max(place.line, 1), max(place.column - 1, 0)] = node
            if not isinstance(node.function, (core.Local, core.Global)):
                function = self.walrus("callee", function, place)
            function = self.call("partial", [function], place, named)
        bundle = self.at(ast.Tuple(arguments, ast.Load()), place)
        self.finish(self.call("Tail", [function, bundle, self.place_constant(place)], place), RETURN, place)

    def again(self, function: Lambda, node: Call) -> None:
        place = node.place
        values = self.arguments(list(node.arguments))
        changed = [
            (self.variable(var), value)
            for var, value in zip(function.params, values)
            if not (isinstance(value, ast.Name) and value.id == self.variable(var))
        ]
        if len(changed) == 1:
            self.assign(*changed[0], place)
        elif changed:
            targets = [self.at(ast.Name(name, ast.Store()), place) for name, _ in changed]
            bundle = self.at(ast.Tuple([value for _, value in changed], ast.Load()), place)
            self.block.append(
                self.at(ast.Assign([self.at(ast.Tuple(targets, ast.Store()), place)], bundle), place)
            )
        self.block.append(self.at(ast.Continue(), place))

    def place_constant(self, place: Place) -> ast.expr:
        return self.load(
            self.unit.constant(
                self.unit.places.setdefault((place.file, place.line, place.column - 1), place)
            ),
            place,
        )

    # Expressions

    def arguments(self, nodes: list[Expr]) -> list[ast.expr]:
        """Their values, in order: what one computes by statements comes after those before it."""
        values: list[ast.expr] = []
        for node in nodes:
            mark = len(self.block)
            value = self.expr(node)
            if len(self.block) > mark:
                added = self.block[mark:]
                del self.block[mark:]
                for i, earlier in enumerate(values):
                    if not self.is_fixed(earlier, nodes[i]):
                        name = self.temp()
                        self.assign(name, earlier, nodes[i].place)
                        values[i] = self.load(name, nodes[i].place)
                self.block += added
            values.append(value)
        # A later argument that assigns a variable must not change what an earlier one read.
        return values if len(values) < 2 or not any(map(assigns, nodes)) else self.kept(values, nodes)

    def kept(self, values: list[ast.expr], nodes: list[Expr]) -> list[ast.expr]:
        for i, value in enumerate(values):
            if not self.is_fixed(value, nodes[i]):
                name = self.temp()
                self.assign(name, value, nodes[i].place)
                values[i] = self.load(name, nodes[i].place)
        return values

    def is_fixed(self, value: ast.expr, node: Expr) -> bool:
        if isinstance(value, ast.Constant):
            return True
        if isinstance(node, core.Local):
            return not node.var.assigned
        return isinstance(node, (Literal, core.PrimRef, Lambda))

    def expr(self, node: Expr) -> ast.expr:
        place = node.place
        match node:
            case Literal(value):
                return self.constant(value, place)
            case core.Local(var):
                self.mark(place)
                return self.load(self.variable(var), place)
            case core.Global(name):
                self.mark(place)
                return self.load(self.unit.global_name(name), place)
            case core.PrimRef(name):
                return self.load(self.unit.primitive_name(name), place)
            case core.SetLocal(var, value):
                self.set_variable(self.variable(var), var, value, place)
                return self.constant(UNSPECIFIED, place)
            case core.SetGlobal(name, value):
                computed = self.expr(value)
                self.mark(place)
                name = self.unit.global_name(name)
                # One that is not defined yet cannot be set.
                self.block.append(self.at(ast.Expr(self.load(name, place)), place))
                self.declared_global.add(name)
                self.assign(name, computed, place)
                return self.constant(UNSPECIFIED, place)
            case Lambda():
                return self.closure(node)
            case Call():
                target = self.unit.flow.callee(node.function)
                value = self.plain_call(node)
                direct = target is not None and not self.unit.flow.of(target).tails
                return value if direct else self.force(value, place)
            case Prim():
                return self.prim(node)
            case core.If(test, then, otherwise):
                return self.conditional(node, test, then, otherwise)
            case core.MakeRecord(type_, arguments):
                values = self.arguments(list(arguments))
                record_type = self.load(self.unit.constant(self.unit.primitive(type_)), place)
                bundle = self.at(ast.List(values, ast.Load()), place)
                checked = any(each.type != "any" or each.weak for each in type_.fields)
                return self.call("make_record" if checked else "Record", [record_type, bundle], place)
            case core.IsRecord(type_, value):
                return self.call(
                    "is_record",
                    [self.expr(value), self.load(self.unit.constant(self.unit.primitive(type_)), place)],
                    place,
                )
            case core.FieldRef(type_, index, record):
                return self.field(node, type_, index, self.expr(record))
            case core.SetField(type_, index, record, value):
                values = self.arguments([record, value])
                record_type = self.load(self.unit.constant(self.unit.primitive(type_)), place)
                return self.call(
                    "set_field", [values[0], record_type, self.python(index, place), values[1]], place
                )
            case core.ForeignCall(declaration, arguments):
                return self.call(
                    self.unit.constant(self.unit.primitive(declaration)),
                    self.arguments(list(arguments)),
                    place,
                )
        name = self.temp()
        self.stmt(node, name)
        return self.load(name, place)

    def set_variable(self, name: str, var: Var, value: Expr, place: Place) -> None:
        computed = self.expr(value)
        if var not in self.bound and not self.owns(var):
            self.nonlocals.add(name)
        self.assign(name, computed, place)

    def owns(self, var: Var) -> bool:
        return self.lambda_ is not None and var in self.lambda_.params

    def field(self, node: core.FieldRef, type_: core.DefType, index: int, record: ast.expr) -> ast.expr:
        place = node.place
        first, again = self.atom(record, place)
        record_type = self.load(self.unit.constant(self.unit.primitive(type_)), place)
        slow = self.call("get_field", [again(), record_type, self.python(index, place)], place)
        if type_.fields[index].weak:
            return self.call("get_field", [record, record_type, self.python(index, place)], place)
        kind = self.at(ast.Attribute(again(), "type", ast.Load()), place)
        test = self.at(
            ast.BoolOp(
                ast.And(),
                [self.is_type(first, "Record", place), self.compare(kind, ast.Is, record_type, place)],
            ),
            place,
        )
        values = self.at(ast.Attribute(again(), "values", ast.Load()), place)
        fast = self.at(ast.Subscript(values, self.python(index, place), ast.Load()), place)
        return self.choose(test, fast, slow, place)

    def conditional(self, node: core.If, test: Expr, then: Expr, otherwise: Expr) -> ast.expr:
        condition = self.test(test)
        yes, yes_value = self.within(lambda: self.expr(then))
        no, no_value = self.within(lambda: self.expr(otherwise))
        if not yes and not no:
            return self.choose(condition, yes_value, no_value, node.place)
        name = self.temp()
        for block, value, branch in ((yes, yes_value, then), (no, no_value, otherwise)):
            block.append(
                self.at(ast.Assign([self.at(ast.Name(name, ast.Store()), branch.place)], value), branch.place)
            )
        self.block.append(self.at(ast.If(condition, yes, no), node.place))
        return self.load(name, node.place)

    def closure(self, node: Lambda) -> ast.expr:
        inner = Body(self.unit, self, node)
        inner.bound = {*node.params, *(var for _, var, _ in node.keywords)} | (
            {node.rest} if node.rest else set()
        )
        place = node.place
        if node.rest is not None:
            rest = inner.variable(node.rest)
            inner.assign(rest, inner.call("list_of", [inner.load(rest, place)], place), place)
        for keyword, var, default in node.keywords:
            given = lambda keyword=keyword: inner.load(keyword_name(keyword), place)
            if default is None:
                inner.assign(inner.variable(var), given(), place)
                continue
            name = inner.variable(var)
            absent = inner.compare(given(), ast.Is, inner.load("MISSING", place), place)
            compute, _ = inner.within(lambda default=default, name=name: inner.stmt(default, name))  # type: ignore[misc]
            keep, _ = inner.within(lambda name=name, given=given: inner.assign(name, given(), place))  # type: ignore[misc]
            inner.block.append(inner.at(ast.If(absent, compute, keep), place))
        if inner.facts is not None and inner.facts.loops:
            block, _ = inner.within(lambda: inner.stmt(node.body, RETURN))
            inner.block.append(inner.at(ast.While(inner.python(True, place), block, []), place))
        else:
            inner.stmt(node.body, RETURN)
        name = self.unit.function_name(node)
        self.block.append(inner.function(name, list(node.params), place))
        return self.load(name, place)

    def plain_call(self, node: Call) -> ast.expr:
        place = node.place
        function, *values = self.arguments(
            [node.function, *node.arguments, *(value for _, value in node.keywords)]
        )
        count = len(node.arguments)
        keywords = self.keywords(node, values)
        if not isinstance(node.function, (core.Local, core.Global)):
            function = self.walrus("callee", function, place)  # for whoever must say what was called in vain
        self.mark(place)
        self.unit.calls[place.file, max(place.line, 1), max(place.column - 1, 0)] = node
        return self.at(ast.Call(function, values[:count], keywords), place)

    def keywords(self, node: Call, values: list[ast.expr]) -> list[ast.keyword]:
        """The call's keywords, whose values follow those of its arguments."""
        return [
            self.at(ast.keyword(keyword_name(keyword), value), node.place)
            for (keyword, _), value in zip(node.keywords, values[len(node.arguments) :])
        ]

    def force(self, value: ast.expr, place: Place) -> ast.expr:
        """The value of a call that may have given back a tail call: that is run."""
        first, again = self.atom(value, place)
        test = self.compare(self.type_of(first, place), ast.IsNot, self.load("Tail", place), place)
        return self.choose(test, again(), self.call("run", [again()], place), place)

    # Tests

    def test(self, node: Expr) -> ast.expr:
        """A Python expression that is true, by Python's lights, when the node's value is true by Purple's."""
        place = node.place
        match node:
            case Literal(value):
                return self.python(value is not False and value is not NIL, place)
            case Prim("not", (value,)):
                return self.at(ast.UnaryOp(ast.Not(), self.test(value)), place)
            case Prim(name, (_, _)) if name in COMPARISONS:
                return self.comparison(node, is_test=True)
            case core.If(test, then, otherwise):
                return self.test_if(node, test, then, otherwise)
        if is_boolean(node):
            return self.expr(node)
        return self.truth(self.expr(node), place)

    def test_if(self, node: core.If, test: Expr, then: Expr, otherwise: Expr) -> ast.expr:
        condition = self.test(test)
        yes, yes_value = self.within(lambda: self.test(then))
        no, no_value = self.within(lambda: self.test(otherwise))
        place = node.place
        if yes or no:
            name = self.temp()
            for block, value in ((yes, yes_value), (no, no_value)):
                block.append(self.at(ast.Assign([self.at(ast.Name(name, ast.Store()), place)], value), place))
            self.block.append(self.at(ast.If(condition, yes, no), place))
            return self.load(name, place)
        if isinstance(no_value, ast.Constant) and not no_value.value:
            return self.at(ast.BoolOp(ast.And(), [condition, yes_value]), place)
        if isinstance(yes_value, ast.Constant) and yes_value.value:
            return self.at(ast.BoolOp(ast.Or(), [condition, no_value]), place)
        return self.choose(condition, yes_value, no_value, place)


def keyword_name(keyword: str) -> str:
    return "k_" + mangle(keyword)


def assigns(node: Expr) -> bool:
    """Whether evaluating the node may assign a local variable right away."""
    stack: list[Any] = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, core.SetLocal):
            return True
        if not isinstance(each, Lambda):
            stack += core.children(each)
    return False
