"""Calls of primitives in Python's syntax trees: the commonest are written out in place, for the types
they usually meet.

Integers are checked to stay within 64 bits; any other type goes to the primitive's own function, which
knows the rest, tensors included.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tenfold.purple import names
from tenfold.purple.core import Expr, Literal, Local, Place, Prim
from tenfold.purple.numerals import LARGEST, SMALLEST
from tenfold.purple.python_ast import Nodes

OPERATORS: dict[str, Any] = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult}
COMPARISONS: dict[str, Any] = {"<": ast.Lt, ">": ast.Gt, "<=": ast.LtE, ">=": ast.GtE, "=": ast.Eq}
TYPE_TESTS = {"pair?": "Pair", "vector?": "list", "string?": "str", "symbol?": "Symbol", "char?": "Char"}


def _is_at_hand(operands: Sequence[Expr]) -> bool:
    """Whether operands can be evaluated after the operators before them: they do nothing and cannot fail."""
    return all(isinstance(operand, Literal | Local) for operand in operands)


class Primitives(Nodes):
    def arguments(self, nodes: list[Expr]) -> list[ast.expr]:
        """The values of arguments, in order."""
        raise NotImplementedError

    def truth(self, value: ast.expr, place: Place) -> ast.expr:
        first, again = self.atom(value, place)
        is_not = lambda left, right: self.compare(left, ast.IsNot, right, place)
        tensor = self.compare(self.type_of(again(), place), ast.IsNot, self.load("Tensor", place), place)
        decided = self.at(ast.BoolOp(ast.Or(), [tensor, self.call("is_true", [again()], place)]), place)
        parts = [
            is_not(again(), self.python(False, place)),
            is_not(again(), self.load("NIL", place)),
            decided,
        ]
        true = self.compare(first, ast.Is, self.python(True, place), place)
        return self.at(ast.BoolOp(ast.Or(), [true, self.at(ast.BoolOp(ast.And(), parts), place)]), place)

    def prim(self, node: Prim) -> ast.expr:
        name, place = node.name, node.place
        self.note(node)
        known = names.PRIMITIVES.get(name)
        count = len(node.arguments)
        if known is not None and (
            count < known.minimum or (known.maximum is not None and count > known.maximum)
        ):
            values = self.arguments(list(node.arguments))
            bundle = self.at(ast.Tuple(values, ast.Load()), place)
            return self.call(
                "wrong_arity", [self.python(name, place), self.python(count, place), bundle], place
            )
        unknown = [
            keyword for keyword, _ in node.keywords if known is not None and keyword not in known.keywords
        ]
        if unknown:
            values = self.arguments([*node.arguments, *(value for _, value in node.keywords)])
            bundle = self.at(ast.Tuple(values, ast.Load()), place)
            return self.call(
                "wrong_keyword", [self.python(name, place), self.python(unknown[0], place), bundle], place
            )
        if name in OPERATORS and (count == 2 or (count > 2 and _is_at_hand(node.arguments[2:]))):
            return self.arithmetic(node)
        if name in COMPARISONS and count == 2:
            return self.comparison(node)
        values = self.arguments([*node.arguments, *(value for _, value in node.keywords)])
        if not node.keywords:
            inline = self.inline(name, values, place)
            if inline is not None:
                return inline
        keywords = [
            self.at(ast.keyword(keyword.replace("-", "_"), value), place)
            for (keyword, _), value in zip(node.keywords, values[count:])
        ]
        return self.call(self.unit.primitive_name(name), values[:count], place, keywords)

    def inline(self, name: str, values: list[ast.expr], place: Place) -> ast.expr | None:
        if name == "cons":
            return self.call("Pair", values, place)
        if name == "not":
            return self.at(ast.UnaryOp(ast.Not(), self.truth(values[0], place)), place)
        if name == "null?":
            return self.compare(values[0], ast.Is, self.load("NIL", place), place)
        if name in TYPE_TESTS:
            return self.is_type(values[0], TYPE_TESTS[name], place)
        if name in ("car", "cdr"):
            first, again = self.atom(values[0], place)
            fast = self.at(ast.Attribute(again(), name, ast.Load()), place)
            slow = self.call(self.unit.primitive_name(name), [again()], place)
            return self.choose(self.is_type(first, "Pair", place), fast, slow, place)
        return None

    def arithmetic(self, node: Prim) -> ast.expr:
        place = node.place
        values = self.arguments(list(node.arguments))
        result = values[0]
        for right in values[1:]:
            result = self.binary(node.name, result, right, place)
        return result

    def binary(self, name: str, left: ast.expr, right: ast.expr, place: Place) -> ast.expr:
        operator = OPERATORS[name]
        first, left_again = self.atom(left, place)
        second, right_again = self.atom(right, place)
        slow = self.call(self.unit.primitive_name(name), [left_again(), right_again()], place)
        value = self.at(ast.BinOp(left_again(), operator(), right_again()), place)
        step = right.value if isinstance(right, ast.Constant) else None
        if name in "+-" and type(step) is int and 0 <= step < 1 << 31:
            # By a small constant: only one end of the range can be passed.
            within = (
                self.compare(left_again(), ast.LtE, self.python(LARGEST - step, place), place)
                if name == "+"
                else self.compare(left_again(), ast.GtE, self.python(SMALLEST + step, place), place)
            )
            test = self.at(ast.BoolOp(ast.And(), [self.is_type(first, "int", place), within]), place)
            return self.choose(test, value, slow, place)
        result = self.temp()
        both_int = self.at(
            ast.Compare(
                self.type_of(first, place),
                [ast.Is(), ast.Is()],
                [self.type_of(second, place), self.load("int", place)],
            ),
            place,
        )
        in_range = self.at(
            ast.Compare(
                self.python(SMALLEST, place),
                [ast.LtE(), ast.LtE()],
                [self.walrus(result, value, place), self.python(LARGEST, place)],
            ),
            place,
        )
        test = self.at(ast.BoolOp(ast.And(), [both_int, in_range]), place)
        return self.choose(test, self.load(result, place), slow, place)

    def comparison(self, node: Prim, is_test: bool = False) -> ast.expr:
        place, name = node.place, node.name
        self.note(node)
        left, right = self.arguments(list(node.arguments))
        first, left_again = self.atom(left, place)
        second, right_again = self.atom(right, place)
        slow = self.call(self.unit.primitive_name(name), [left_again(), right_again()], place)
        if is_test:
            slow = self.call("is_true", [slow], place)
        value = self.compare(left_again(), COMPARISONS[name], right_again(), place)
        if isinstance(right, ast.Constant) and type(right.value) is int:
            test = self.is_type(first, "int", place)
        else:
            test = self.at(
                ast.Compare(
                    self.type_of(first, place),
                    [ast.Is(), ast.Is()],
                    [self.type_of(second, place), self.load("int", place)],
                ),
                place,
            )
        return self.choose(test, value, slow, place)
