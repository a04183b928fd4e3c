"""Python functions as sources of TorchScript, which libtorch compiles: with their choices and loops, which a
trace would not keep."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any, NoReturn

from tenfold.base.dtypes import DType
from tenfold.base.errors import UnsupportedError
from tenfold.exporting.known import Known, stored
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


class Rewriter(Known):
    """Rewrites what the function reads from outside into what libtorch's compiler knows."""

    def __init__(self, sources: Sources, function: FunctionType):
        super().__init__(function)
        self.sources = sources
        self.undecided = 0  # how many `if` and loop statements of TorchScript's surround the statement

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
        node.args.kw_defaults = [each and self.visit(each) for each in node.args.kw_defaults]
        node.returns = self._type(node.returns)
        code = self.function.__code__
        self.own |= {*code.co_varnames, *code.co_cellvars, *stored(node.body)}
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
        bound = self._bound(node)
        node.test = self.visit(node.test)
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        self.forget(bound)
        return node

    def visit_For(self, node: ast.For) -> Any:
        """A loop, which starts again with what its body has bound."""
        bound = self._bound(node)
        node.iter = self.visit(node.iter)
        self.forget(bound)
        node.target = self.visit(node.target)
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        self.forget(bound)
        return node

    def visit_While(self, node: ast.While) -> Any:
        bound = self._bound(node)
        self.forget(bound)
        node.test = self.visit(node.test)
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        self.forget(bound)
        return node

    def _bound(self, node: ast.stmt) -> set[str]:
        """The names that a choice or loop binds, none of which may be assigned if it is a known one."""
        for each in ast.walk(node):
            if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                for name in stored([each]) & set(self.known):
                    self._refuse_binding(each, name)
        return stored([node])

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a branch or loop that is entered or not only when the program runs."""
        self.undecided += 1
        try:
            return self.statements(body) if body else []
        finally:
            self.undecided -= 1

    def _decided(self, test: ast.expr) -> tuple[bool, Any]:
        """Whether a condition is known: `a and b` is if one of the two is known not to hold."""
        if isinstance(test, ast.BoolOp):
            settles = isinstance(test.op, ast.Or)
            for known, found in [self.static(each) for each in test.values]:
                if known and isinstance(found, (bool, int, str, type(None))) and bool(found) is settles:
                    return True, settles
        return self.static(test)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """A local name for a function or layer is known, and its assignment is not written."""
        known, found = self.static(node.value)
        target = node.targets[0]
        if known and callable(found) and isinstance(target, ast.Name) and len(node.targets) == 1:
            if self.undecided:
                self._refuse_binding(node, target.id)
            self.known[target.id] = found
            return None
        node.value = self.visit(node.value)
        self.forget(stored(node.targets))
        node.targets = [self.visit(each) for each in node.targets]
        return node

    def _refuse_binding(self, node: ast.AST, name: str) -> NoReturn:
        self.refuse(
            node,
            f"{name} names a function or layer chosen in an if or a loop, which TorchScript has not",
            "call each function in its own branch, and assign the results",
        )

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        annotation = self._type(node.annotation)
        assert annotation is not None
        node.annotation = annotation
        node.value = None if node.value is None else self.visit(node.value)
        self.forget(stored([node]))
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

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """A comprehension, whose variables are its own."""
        outer = dict(self.known)
        for each in node.generators:
            each.iter = self.visit(each.iter)
            self.forget(stored([each.target]))
            each.ifs = [self.visit(test) for test in each.ifs]
        node.elt = self.visit(node.elt)
        self.known = outer
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
