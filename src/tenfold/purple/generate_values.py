"""Expressions in Python's syntax trees: each gives a value, after the statements that it needs before it."""

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
from tenfold.purple.subexpressions import children
from tenfold.purple.values import NIL, UNSPECIFIED

RETURN, EFFECT = "return", "effect"  # where a value goes, besides into a variable


class Values(Primitives):
    """One Python function under way, and the values of expressions inside it."""

    def __init__(self, unit: Unit, outer: Values | None, function: Lambda | None = None):
        super().__init__(unit)
        self.outer = outer
        self.lambda_ = function
        self.facts: Facts | None = unit.flow.of(function) if function is not None else None
        self.bound: set[Var] = set()
        self.nonlocals: set[str] = set()
        self.declared_global: set[str] = set()
        self.in_while = 0
        self.in_calls = 0  # how many calls are under way whose operands are written

    def stmt(self, node: Expr, target: str) -> None:
        """Add the statements that compute an expression and bring its value to the target."""
        raise NotImplementedError

    def within(self, emit: Callable[[], Any]) -> tuple[list[ast.stmt], Any]:
        """The statements that `emit` adds, apart, and what it gives."""
        raise NotImplementedError

    def closure(self, node: Lambda) -> ast.expr:
        """A lambda's value, after the definition of its function."""
        raise NotImplementedError

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
                self.note(node)
                values = self.arguments(list(arguments))
                record_type = self.load(self.unit.constant(self.unit.primitive(type_)), place)
                bundle = self.at(ast.List(values, ast.Load()), place)
                checked = any(field.type != "any" or field.weak for field in type_.fields)
                return self.call("make_record" if checked else "Record", [record_type, bundle], place)
            case core.IsRecord(type_, value):
                return self.call(
                    "is_record",
                    [self.expr(value), self.load(self.unit.constant(self.unit.primitive(type_)), place)],
                    place,
                )
            case core.FieldRef(type_, index, record):
                self.note(node)
                return self.field(node, type_, index, self.expr(record))
            case core.SetField(type_, index, record, value):
                self.note(node)
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

    def plain_call(self, node: Call) -> ast.expr:
        place = node.place
        function, *values = self.operands(node)
        count = len(node.arguments)
        keywords = self.keywords(node, values)
        if not isinstance(node.function, (core.Local, core.Global)):
            function = self.callee(node, function)
        self.mark(place)
        self.unit.calls[place.file, max(place.line, 1), max(place.column - 1, 0)] = node
        return self.at(ast.Call(function, values[:count], keywords), place)

    def operands(self, node: Call) -> list[ast.expr]:
        """A call's function, its arguments and the values of its keywords."""
        self.in_calls += 1
        found = self.arguments([node.function, *node.arguments, *(value for _, value in node.keywords)])
        self.in_calls -= 1
        return found

    def callee(self, node: Call, function: ast.expr) -> ast.expr:
        """What a call calls, kept for whoever must say what was called in vain. The calls among its arguments
        keep theirs under other names."""
        name = f"callee{self.in_calls or ''}"
        self.unit.callees[node.function] = name
        return self.walrus(name, function, node.place)

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
            stack += children(each)
    return False
