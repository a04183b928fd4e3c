"""What is known of a Python function before it runs: the values of its free names, and of expressions
made of these alone."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from tenfold.tensor import Tensor

__all__ = ["Known", "stored"]

# What Python may work out of what is known.
PURE = (getattr, hasattr, isinstance, len, tuple, list, reversed, enumerate, zip, min, max, callable)
PURE_METHODS = ("values", "items", "keys", "children", "named_children", "__getitem__")


class Known(ast.NodeTransformer):
    """Evaluates expressions of a function that depend on nothing that it is given."""

    def __init__(self, function: FunctionType):
        self.function = function
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.outside = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        self.own: set[str] = set()  # local names, which hide those outside
        self.known: dict[str, Any] = {}  # local names whose values are known

    def forget(self, names: set[str]) -> None:
        for name in names:
            self.known.pop(name, None)

    def static(self, node: ast.expr) -> tuple[bool, Any]:
        """Whether an expression is made of what is known, and its value. What may be written to is not: a
        tensor's elements, or whether a module is in training."""
        if not self._is_static(node):
            return False, None
        names = {
            child.id: self._named(child.id)[1] for child in ast.walk(node) if isinstance(child, ast.Name)
        }
        try:
            code = compile(ast.Expression(ast.fix_missing_locations(copy.deepcopy(node))), "<static>", "eval")
            return True, eval(code, {"__builtins__": builtins, **names})
        except Exception:
            return False, None

    def _named(self, name: str) -> tuple[bool, Any]:
        if name in self.known:
            return True, self.known[name]
        if name in self.own:
            return False, None
        if name in self.outside:
            return True, self.outside[name]
        return hasattr(builtins, name), getattr(builtins, name, None)

    def _is_static(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return isinstance(node.ctx, ast.Load) and self._named(node.id)[0]
        if isinstance(node, ast.Attribute):
            if node.attr == "training" or not self._is_static(node.value):
                return False
            of_tensor = isinstance(self.static(node.value)[1], Tensor)
            return not of_tensor or node.attr in ("shape", "ndim", "dtype")
        if isinstance(node, ast.Call):
            callee = node.func
            pure = (
                isinstance(callee, ast.Attribute)
                and callee.attr in PURE_METHODS
                and self._is_static(callee.value)
            )
            if not pure:
                known, callee_value = self.static(callee) if isinstance(callee, ast.Name) else (False, None)
                pure = known and callee_value in PURE
            arguments = [*node.args, *[keyword.value for keyword in node.keywords]]
            return pure and all(map(self._is_static, arguments))
        if isinstance(
            node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.JoinedStr, ast.FormattedValue)
        ):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            return all(map(self._is_static, inner)) and not self._reads_tensors(node)
        if isinstance(node, (ast.Tuple, ast.List, ast.Subscript, ast.IfExp)):
            return all(
                self._is_static(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
            )
        return False

    def _reads_tensors(self, node: ast.AST) -> bool:
        """Whether an operator has a tensor as an operand; whether one is None may be asked."""
        if isinstance(node, ast.Compare) and all(
            isinstance(comparison, (ast.Is, ast.IsNot)) for comparison in node.ops
        ):
            return False
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return any(isinstance(self.static(node)[1], Tensor) for node in inner)


def stored(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that these nodes bind, at any depth."""
    inner = [child for node in nodes for child in ast.walk(node)]
    return {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
