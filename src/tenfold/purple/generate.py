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
from tenfold.purple.core import Call, Expr, Lambda, Place, Prim, Var
from tenfold.purple.generate_values import EFFECT, RETURN, Values, keyword_name
from tenfold.purple.python_ast import Unit
from tenfold.purple.values import UNSPECIFIED


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


class Body(Values):
    """One Python function under way."""

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
            [], [argument(self.variable(parameter)) for parameter in parameters], None, [], [], None, []
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
                for expr in exprs[:-1]:
                    self.stmt(expr, EFFECT)
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
            case Prim("apply", arguments) if (
                target == RETURN
                and len(arguments) > 1
                and not core.applied_primitive(node)
                # What the library applies by its own choice comes back to it: errors name who called that.
                and not (core.is_unseen(node.place.file) and core.is_chosen(arguments[0]))
            ):
                first, *others = self.arguments(list(arguments))
                spread = self.call("spread", others, node.place)
                self.note_given(node)
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
            at, function = node.handler.place, self.expr(node.handler)
            if target == RETURN:
                arguments = self.at(ast.Tuple([error], ast.Load()), at)
                value = self.call("Tail", [function, arguments, self.place_constant(at)], at)
            else:
                value = self.call("invoke", [function, error, self.place_constant(at)], at)
            self.finish(value, target, at)

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
        function, *arguments = self.operands(node)
        if node.keywords:
            named = self.keywords(node, arguments)
            del arguments[len(node.arguments) :]
            self.unit.calls[place.file, max(place.line, 1), max(place.column - 1, 0)] = node
            if not isinstance(node.function, (core.Local, core.Global)):
                function = self.callee(node, function)
            function = self.call("partial", [function], place, named)
        self.note_given(node)
        bundle = self.at(ast.Tuple(arguments, ast.Load()), place)
        self.finish(self.call("Tail", [function, bundle, self.place_constant(place)], place), RETURN, place)

    def note_given(self, node: Call | Prim) -> None:
        """Keep the place of a call in tail position of what the function was given: its frame leaves."""
        called = core.called(node)
        if called is not None and not core.is_chosen(called):
            self.unit.given.add(node.place)

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
