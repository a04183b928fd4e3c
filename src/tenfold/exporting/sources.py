"""Python functions as sources of TorchScript, which libtorch compiles: with their choices and loops, which a
trace would not keep."""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import math
import textwrap
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any, NoReturn

from tenfold.base.dtypes import DType
from tenfold.base.errors import UnsupportedError
from tenfold.mlir.torch_types import SCALAR_TYPES
from tenfold.ops.table import TABLE, Row
from tenfold.tensor import Tensor

__all__ = ["Rewriter", "Sources", "definition", "script_source"]

# Types that TorchScript writes in another way than Python.
CONTAINERS = {"list": "List", "tuple": "Tuple", "dict": "Dict"}
# Arguments of functions that no operator has, where they say what is so anyway.
NEUTRAL = {"inplace": (False,), "_stacklevel": (3, 5, None), "return_indices": (False,)}
# Arguments of operators that no function has: which of libtorch's kernels may be used.
IMPLIED = {"cudnn_enabled": True}
# What Python may work out of what is known.
PURE = (getattr, hasattr, isinstance, len, tuple, list, reversed, enumerate, zip, min, max, callable)
PURE_METHODS = ("values", "items", "keys", "children", "named_children", "__getitem__")
CONSTANTS = (bool, int, float, str)


def script_source(function: Callable[..., Any], name: str = "forward") -> str:
    """The function, and those of the user's own that it calls, as text for libtorch's compiler."""
    return "\n\n".join(Sources().of(function, name)) + "\n"


class Sources:
    """The functions of one source, each under a name of its own."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix  # by which they are called
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
        return self.prefix + self.names[function]

    def _write(self, function: FunctionType, name: str) -> None:
        self.names[function] = name
        rewritten = Rewriter(self, function).visit(definition(function))
        rewritten.name = name
        self.written.append(ast.unparse(ast.fix_missing_locations(rewritten)))  # after those that it calls


def definition(function: FunctionType) -> ast.FunctionDef:
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


class Rewriter(ast.NodeTransformer):
    """Rewrites what the function reads from outside into what libtorch's compiler knows."""

    def __init__(self, sources: Sources, function: FunctionType):
        self.sources, self.function = sources, function
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.outside = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        self.own = set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)
        self.known: dict[str, Any] = {}  # names of the function's own whose values are known

    def refuse(self, node: ast.AST, why: str, help: str | None = None) -> NoReturn:
        line = getattr(node, "lineno", 1) + self.function.__code__.co_firstlineno - 1
        raise UnsupportedError(f"{self.function.__qualname__}, line {line}: {why}", help=help)

    # Statements

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        for each in [*node.args.args, *node.args.kwonlyargs]:
            each.annotation = self._type(each.annotation)
        if node.args.vararg or node.args.kwarg:
            self.refuse(node, "TorchScript has no *args and **kwargs", "name each argument")
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.returns = self._type(node.returns)
        node.body = self.statements(node.body)
        return node

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block, rewritten; an `if` on what is known is the branch that is taken."""
        found: list[ast.stmt] = []
        for each in body:
            made = self.visit(each)
            found += made if isinstance(made, list) else [] if made is None else [made]
        return found or [ast.Pass()]

    def visit_If(self, node: ast.If) -> Any:
        known, test = self._decided(node.test)
        if known and isinstance(test, (bool, int, str, type(None))):
            taken = node.body if test else node.orelse
            return self.statements(taken) if taken else None
        node.test = self.visit(node.test)
        node.body = self.statements(node.body)
        node.orelse = self.statements(node.orelse) if node.orelse else []
        return node

    def _decided(self, test: ast.expr) -> tuple[bool, Any]:
        """Whether a condition is known: `a and b` is if one of the two is known not to hold."""
        if isinstance(test, ast.BoolOp):
            settles = isinstance(test.op, ast.Or)
            for known, found in [self.static(each) for each in test.values]:
                if known and isinstance(found, (bool, int, str, type(None))) and bool(found) is settles:
                    return True, settles
        return self.static(test)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """A name of the function's own for something that is called is known, and not written."""
        known, found = self.static(node.value)
        target = node.targets[0]
        if known and callable(found) and isinstance(target, ast.Name) and len(node.targets) == 1:
            self.known[target.id] = found
            return None
        for each in ast.walk(ast.Tuple(list(node.targets), ast.Store())):
            if isinstance(each, ast.Name):
                self.known.pop(each.id, None)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        annotation = self._type(node.annotation)
        assert annotation is not None
        node.annotation = annotation
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """An error is a failed assertion, with what is known of its message."""
        given = node.exc.args[:1] if isinstance(node.exc, ast.Call) else []
        parts = given[0].values if given and isinstance(given[0], ast.JoinedStr) else given
        told = [self.static(each) for each in parts]
        message = "".join([str(found) if known else "..." for known, found in told])
        return ast.Assert(ast.Constant(False), ast.Constant(message or "an error"))

    # Types

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
        known, found = self.static(node)
        if known and found is Any:  # as a library's layers say of what is a tensor
            return None
        if known and isinstance(found, type):
            return ast.Name("Tensor" if issubclass(found, Tensor) else found.__name__, ast.Load())
        return node

    # What is known

    def static(self, node: ast.expr) -> tuple[bool, Any]:
        """Whether an expression is made of what is known, and its value. What may be written to is not: a
        tensor's elements, or whether a module is in training."""
        if not self._is_static(node):
            return False, None
        names = {each.id: self._named(each.id)[1] for each in ast.walk(node) if isinstance(each, ast.Name)}
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
                known, found = self.static(callee) if isinstance(callee, ast.Name) else (False, None)
                pure = known and found in PURE
            given = [*node.args, *[each.value for each in node.keywords]]
            return pure and all(map(self._is_static, given))
        if isinstance(
            node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.JoinedStr, ast.FormattedValue)
        ):
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
            return all(map(self._is_static, inner)) and not self._reads_tensors(node)
        if isinstance(node, (ast.Tuple, ast.List, ast.Subscript, ast.IfExp)):
            return all(
                self._is_static(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)
            )
        return False

    def _reads_tensors(self, node: ast.AST) -> bool:
        """Whether an operator has a tensor as an operand; whether one is None may be asked."""
        if isinstance(node, ast.Compare) and all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
            return False
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        return any(isinstance(self.static(each)[1], Tensor) for each in inner)

    # Expressions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        known, callee = self.static(node.func)
        if known:
            self._arrange(node, callee)
        node.args = [self.visit(each) for each in node.args]
        for each in node.keywords:
            each.value = self.visit(each.value)
        node.func = self.callee_of(node.func, callee) if known else self.visit(node.func)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """What a tuple of constants has in it is asked of a list."""
        found: Any = self.generic_visit(node)
        for i, (test, each) in enumerate(zip(found.ops, found.comparators, strict=True)):
            if isinstance(test, (ast.In, ast.NotIn)) and isinstance(each, ast.Tuple):
                found.comparators[i] = ast.List(each.elts, ast.Load())
        return found

    def _arrange(self, node: ast.Call, callee: Any) -> None:
        """Leave out arguments of a wrapper that its operator has not, and see that the others are its own."""
        name = getattr(callee, "__name__", "")
        if not _is_ours(callee) or name not in TABLE or not isinstance(callee, FunctionType):
            return
        node.keywords = [each for each in node.keywords if not self._is_neutral(each.arg or "", each.value)]
        parameters = inspect.signature(callee).parameters
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters.values()):
            return  # the operator itself
        words = list(parameters)
        given = [*zip(words, node.args), *[(each.arg or "", each.value) for each in node.keywords]]
        kept = [(word, value) for word, value in given if not self._is_neutral(word, value)]
        for row in TABLE[name]:
            places = _matched([word for word in words if word not in NEUTRAL], row)
            if all(word in places for word, _ in kept):
                node.args, node.keywords = [], [ast.keyword(places[word], value) for word, value in kept]
                wanted = [each.name for each in row.schema.arguments if each.name in IMPLIED]
                node.keywords += [ast.keyword(each, ast.Constant(IMPLIED[each])) for each in wanted]
                return
        self.refuse(node, f"{name} takes other arguments than the operator of that name", "call the operator")

    def _is_neutral(self, word: str, value: ast.expr) -> bool:
        known, found = self.static(value)
        return word in NEUTRAL and known and found in NEUTRAL[word]

    def callee_of(self, node: ast.expr, callee: Any) -> ast.expr:
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
            return ast.parse(self.sources.name_of(wrapped), mode="eval").body
        self.refuse(
            node, f"TorchScript does not know {ast.unparse(node)}", "call operators and functions with def"
        )

    def visit(self, node: ast.AST) -> Any:
        """An expression that is known whole is its value."""
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", ast.Load()), ast.Store):
            known, found = self.static(node)
            written = self.value_of(node, found) if known else None
            if written is not None:
                return written
            if known and isinstance(node, (ast.Name, ast.Attribute)):
                self.refuse(node, f"TorchScript cannot keep {ast.unparse(node)}, a {type(found).__name__}")
        return super().visit(node)

    def value_of(self, node: ast.expr, found: Any) -> ast.expr | None:
        """A value from outside is a constant; a dtype is its number."""
        if isinstance(found, DType):
            return ast.Constant(SCALAR_TYPES[found.name])
        if found is None or isinstance(found, CONSTANTS):
            return _constant(found)
        if isinstance(found, (tuple, list)) and all(isinstance(each, CONSTANTS) for each in found):
            make = ast.Tuple if isinstance(found, tuple) else ast.List
            return make([_constant(each) for each in found], ast.Load())
        return None


def _matched(words: list[str], row: Row) -> dict[str, str]:
    """What the operator calls a function's arguments: the same, `self` for the first, or the beginning of the
    word in the same place, as `train` for `training`."""
    schema = [each.name for each in row.schema.arguments]
    found = {word: word for word in words if word in schema}
    for word, other in zip(words, schema):
        if word not in found and (other == "self" or word.startswith(other)):
            found[word] = other
    return found


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
