"""Python functions as sources of TorchScript, which libtorch compiles: with their choices and loops, which a
trace would not keep."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NoReturn

from tenfold.base.dtypes import DType
from tenfold.base.errors import UnsupportedError
from tenfold.mlir.torch_types import SCALAR_TYPES
from tenfold.ops.table import TABLE
from tenfold.tensor import Tensor

__all__ = ["script_source"]

# Types that TorchScript writes in another way than Python.
CONTAINERS = {"list": "List", "tuple": "Tuple", "dict": "Dict"}
# Arguments of functions that no operator has, where they say what is so anyway.
NEUTRAL = {"inplace": (False,), "_stacklevel": (3, 5, None)}


def script_source(function: Callable[..., Any], name: str = "forward") -> str:
    """The function, and those of the user's own that it calls, as text for libtorch's compiler."""
    return "\n\n".join(Sources().of(function, name)) + "\n"


class Sources:
    """The functions of one source, each under a name of its own."""

    def __init__(self) -> None:
        self.names: dict[FunctionType, str] = {}
        self.written: list[str] = []

    def of(self, function: Callable[..., Any], name: str) -> list[str]:
        function = inspect.unwrap(function)
        if not isinstance(function, FunctionType):
            raise UnsupportedError(
                f"TorchScript is made of Python functions, not of a {type(function).__name__}"
            )
        self._write(function, name)
        return self.written

    def name_of(self, function: FunctionType) -> str:
        """Under which name a function is called; it is written if it was not yet."""
        if function not in self.names:
            self._write(function, f"{function.__name__}_{len(self.names)}")
        return self.names[function]

    def _write(self, function: FunctionType, name: str) -> None:
        self.names[function] = name
        definition = _definition(function)
        rewritten = _Rewriter(self, function).visit(definition)
        rewritten.name = name
        self.written.append(ast.unparse(ast.fix_missing_locations(rewritten)))  # after those that it calls


def _definition(function: FunctionType) -> ast.FunctionDef:
    """The `def` of a function, without its decorators and its documentation."""
    try:
        parsed = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        parsed = ast.Module([], [])
    found = parsed.body[0] if parsed.body else None
    if not isinstance(found, ast.FunctionDef):
        raise UnsupportedError(
            f"{function.__name__} has no source of its own, which TorchScript is made of",
            help="write it with def in a file, or trace it",
        )
    found.decorator_list = []
    if ast.get_docstring(found) is not None:
        found.body = found.body[1:] or [ast.Pass()]
    return found


class _Rewriter(ast.NodeTransformer):
    """Rewrites names that the function reads from outside into what libtorch's compiler knows."""

    def __init__(self, sources: Sources, function: FunctionType):
        self.sources, self.function = sources, function
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.outside = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        self.own = set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)

    def refuse(self, node: ast.AST, why: str, help: str | None = None) -> NoReturn:
        line = getattr(node, "lineno", 1) + self.function.__code__.co_firstlineno - 1
        raise UnsupportedError(f"{self.function.__name__}, line {line}: {why}", help=help)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        for each in [*node.args.args, *node.args.kwonlyargs]:
            each.annotation = self._type(each.annotation)
        if node.args.vararg or node.args.kwarg:
            self.refuse(node, "TorchScript has no *args and **kwargs", "name each argument")
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.returns = self._type(node.returns)
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        annotation = self._type(node.annotation)
        assert annotation is not None
        node.annotation = annotation
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def _type(self, node: ast.expr | None) -> ast.expr | None:
        """An annotation as TorchScript writes it: List[int] for list[int], Optional[int] for int | None."""
        if node is None:
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        if isinstance(node, ast.Constant) and node.value is None:
            return ast.Name("NoneType", ast.Load())
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            some = [each for each in (node.left, node.right) if not _is_none(each)]
            if len(some) == 1:
                return _subscript("Optional", [self._type(some[0])])
            self.refuse(node, "TorchScript has no such union", "Optional[...] is one")
        if isinstance(node, ast.Subscript):
            name = node.value.attr if isinstance(node.value, ast.Attribute) else ast.unparse(node.value)
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return _subscript(CONTAINERS.get(name, name), [self._type(each) for each in parts])
        if isinstance(node, (ast.Name, ast.Attribute)):
            known, found = self._static(node)
            if known and isinstance(found, type):
                return ast.Name("Tensor" if issubclass(found, Tensor) else found.__name__, ast.Load())
        return node

    def _static(self, node: ast.expr) -> tuple[bool, Any]:
        """What a name from outside, or an attribute of one, is; whether it is that."""
        if isinstance(node, ast.Name):
            if node.id in self.own:
                return False, None
            if node.id in self.outside:
                return True, self.outside[node.id]
            return hasattr(builtins, node.id), getattr(builtins, node.id, None)
        if isinstance(node, ast.Attribute):
            known, owner = self._static(node.value)
            if known and isinstance(owner, (ModuleType, type)) and hasattr(owner, node.attr):
                return True, getattr(owner, node.attr)
        return False, None

    def visit_Call(self, node: ast.Call) -> ast.AST:
        known, callee = self._static(node.func)
        node.args = [self.visit(each) for each in node.args]
        kept = []
        for each in node.keywords:
            given = each.value.value if isinstance(each.value, ast.Constant) else ast
            if known and each.arg in NEUTRAL and given in NEUTRAL[each.arg]:
                continue
            each.value = self.visit(each.value)
            kept.append(each)
        node.keywords = kept
        node.func = self._callee(node.func, callee) if known else self.visit(node.func)
        return node

    def _callee(self, node: ast.expr, callee: Any) -> ast.expr:
        """How libtorch's compiler calls a function from outside."""
        name = getattr(callee, "__name__", "")
        if getattr(builtins, name, None) is callee:
            return ast.Name(name, ast.Load())
        if name in TABLE and _is_ours(callee):
            return _operator(name)
        if isinstance(callee, BuiltinFunctionType) and getattr(math, name, None) is callee:
            return _operator(name)
        wrapped = inspect.unwrap(callee) if callable(callee) else callee
        if isinstance(wrapped, FunctionType) and not _is_ours(callee):
            return ast.Name(self.sources.name_of(wrapped), ast.Load())
        self.refuse(
            node, f"TorchScript does not know {ast.unparse(node)}", "operators and functions are called"
        )

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._value(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._value(node)

    def _value(self, node: ast.Name | ast.Attribute) -> ast.AST:
        """A value from outside is a constant; a dtype is its number."""
        known, found = self._static(node) if isinstance(node.ctx, ast.Load) else (False, None)
        if not known:
            return self.generic_visit(node)
        if isinstance(found, DType):
            return ast.Constant(SCALAR_TYPES[found.name])
        if found is None or isinstance(found, (bool, int, float, str)):
            return _constant(found)
        if isinstance(found, (tuple, list)) and all(
            isinstance(each, (bool, int, float, str)) for each in found
        ):
            make = ast.Tuple if isinstance(found, tuple) else ast.List
            return make([_constant(each) for each in found], ast.Load())
        self.refuse(node, f"TorchScript cannot keep {ast.unparse(node)}, a {type(found).__name__}")


def _constant(value: Any) -> ast.expr:
    """A constant, infinities included, which have no literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
    return ast.Constant(value)


def _operator(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load())


def _subscript(name: str, parts: list[ast.expr | None]) -> ast.expr:
    some = [each for each in parts if each is not None]
    inner = some[0] if len(some) == 1 else ast.Tuple(some, ast.Load())
    return ast.Subscript(ast.Name(name, ast.Load()), inner, ast.Load())


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "tenfold"
