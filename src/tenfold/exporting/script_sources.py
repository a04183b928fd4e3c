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
from tenfold.exporting.static_values import Known, stored
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
    definition = parsed.body[0] if parsed.body else None
    if not isinstance(definition, ast.FunctionDef):
        raise UnsupportedError(
            f"{function.__name__} has no source of its own, which TorchScript is made of",
            help="write it with def in a file, or trace it",
        )
    definition.decorator_list = []
    if ast.get_docstring(definition) is not None:
        definition.body = definition.body[1:] or [ast.Pass()]
    return definition


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
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            argument.annotation = self._type(argument.annotation)
        if node.args.vararg or node.args.kwarg:
            self.refuse(node, "TorchScript has no *args and **kwargs", "name each argument")
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [default and self.visit(default) for default in node.args.kw_defaults]
        node.returns = self._type(node.returns)
        code = self.function.__code__
        self.own |= {*code.co_varnames, *code.co_cellvars, *stored(node.body)}
        node.body = self.statements(node.body)
        return node

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block, rewritten; an `if` on what is known is the branch that is taken."""
        statements: list[ast.stmt] = []
        for statement in body:
            rewritten = self.visit(statement)
            statements += (
                rewritten if isinstance(rewritten, list) else [] if rewritten is None else [rewritten]
            )
        return statements or [ast.Pass()]

    def visit_If(self, node: ast.If) -> Any:
        known, test = self._decided(node.test)
        if known and isinstance(test, (bool, int, str, type(None))):
            taken = node.body if test else node.orelse
            return self.statements(taken) if taken else None
        bound = self._bound(node)
        node.test = self.visit(node.test)
        return self._entered(node, bound)

    def visit_For(self, node: ast.For) -> Any:
        """A loop, which starts again with what its body has bound."""
        bound = self._bound(node)
        node.iter = self.visit(node.iter)
        self.forget(bound)
        node.target = self.visit(node.target)
        return self._entered(node, bound)

    def visit_While(self, node: ast.While) -> Any:
        bound = self._bound(node)
        self.forget(bound)
        node.test = self.visit(node.test)
        return self._entered(node, bound)

    def _bound(self, node: ast.stmt) -> set[str]:
        """The names that a choice or loop binds, none of which may be assigned if it is a known one."""
        for child in ast.walk(node):
            if isinstance(child, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                for name in stored([child]) & set(self.known):
                    self._refuse_binding(child, name)
        return stored([node])

    def _entered(self, node: ast.If | ast.For | ast.While, bound: set[str]) -> ast.stmt:
        """A choice or loop with its blocks rewritten, after which nothing is known of what it binds."""
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        self.forget(bound)
        return node

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
            for known, value in [self.static(operand) for operand in test.values]:
                if known and isinstance(value, (bool, int, str, type(None))) and bool(value) is settles:
                    return True, settles
        return self.static(test)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """A local name for a function or layer is known, and its assignment is not written."""
        known, static = self.static(node.value)
        target = node.targets[0]
        if known and callable(static) and isinstance(target, ast.Name) and len(node.targets) == 1:
            if self.undecided:
                self._refuse_binding(node, target.id)
            self.known[target.id] = static
            return None
        node.value = self.visit(node.value)
        self.forget(stored(node.targets))
        node.targets = [self.visit(target) for target in node.targets]
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
        arguments = node.exc.args[:1] if isinstance(node.exc, ast.Call) else []
        parts = arguments[0].values if arguments and isinstance(arguments[0], ast.JoinedStr) else arguments
        told = [self.static(part) for part in parts]
        message = "".join([str(value) if known else "..." for known, value in told])
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
            some = [side for side in (node.left, node.right) if not _is_none(side)]
            if len(some) == 1:
                return _subscript("Optional", [self._type(some[0])])
            self.refuse(node, "TorchScript has no such union", "Optional[...] is one")
        if isinstance(node, ast.Subscript):
            name = node.value.attr if isinstance(node.value, ast.Attribute) else ast.unparse(node.value)
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return _subscript(CONTAINERS.get(name, name), [self._type(part) for part in parts])
        known, static = self.static(node)
        if known and static is Any:  # as a library's layers say of what is a tensor
            return None
        if known and isinstance(static, type):
            return ast.Name("Tensor" if issubclass(static, Tensor) else static.__name__, ast.Load())
        return node

    # Expressions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        known, callee = self.static(node.func)
        if known:
            self._arrange(node, callee)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        node.func = self.callee_of(node.func, callee) if known else self.visit(node.func)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """A comprehension, whose variables are its own."""
        outer = dict(self.known)
        for generator in node.generators:
            generator.iter = self.visit(generator.iter)
            self.forget(stored([generator.target]))
            generator.ifs = [self.visit(test) for test in generator.ifs]
        node.elt = self.visit(node.elt)
        self.known = outer
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """What a tuple of constants has in it is asked of a list."""
        compared: Any = self.generic_visit(node)
        for i, (test, comparator) in enumerate(zip(compared.ops, compared.comparators, strict=True)):
            if isinstance(test, (ast.In, ast.NotIn)) and isinstance(comparator, ast.Tuple):
                compared.comparators[i] = ast.List(comparator.elts, ast.Load())
        return compared

    def _arrange(self, node: ast.Call, callee: Any) -> None:
        """Leave out arguments of a wrapper that its operator has not, and see that the others are its own."""
        name = getattr(callee, "__name__", "")
        if not _is_ours(callee) or name not in TABLE or not isinstance(callee, FunctionType):
            return
        node.keywords = [
            keyword for keyword in node.keywords if not self._is_neutral(keyword.arg or "", keyword.value)
        ]
        parameters = inspect.signature(callee).parameters
        if any(
            parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            for parameter in parameters.values()
        ):
            return  # the operator itself
        words = list(parameters)
        arguments = [
            *zip(words, node.args),
            *[(keyword.arg or "", keyword.value) for keyword in node.keywords],
        ]
        kept = [(word, value) for word, value in arguments if not self._is_neutral(word, value)]
        for row in TABLE[name]:
            places = _matched([word for word in words if word not in NEUTRAL], row)
            if all(word in places for word, _ in kept):
                node.args, node.keywords = [], [ast.keyword(places[word], value) for word, value in kept]
                wanted = [argument.name for argument in row.schema.arguments if argument.name in IMPLIED]
                node.keywords += [ast.keyword(name, ast.Constant(IMPLIED[name])) for name in wanted]
                return
        self.refuse(node, f"{name} takes other arguments than the operator of that name", "call the operator")

    def _is_neutral(self, word: str, value: ast.expr) -> bool:
        known, static = self.static(value)
        return word in NEUTRAL and known and static in NEUTRAL[word]

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
            known, static = self.static(node)
            written = self.value_of(node, static) if known else None
            if written is not None:
                return written
            if known and isinstance(node, (ast.Name, ast.Attribute)):
                self.refuse(node, f"TorchScript cannot keep {ast.unparse(node)}, a {type(static).__name__}")
        return super().visit(node)

    def value_of(self, node: ast.expr, static: Any) -> ast.expr | None:
        """A value from outside is a constant; a dtype is its number."""
        if isinstance(static, DType):
            return ast.Constant(SCALAR_TYPES[static.name])
        if static is None or isinstance(static, CONSTANTS):
            return _constant(static)
        if isinstance(static, (tuple, list)) and all(isinstance(element, CONSTANTS) for element in static):
            make = ast.Tuple if isinstance(static, tuple) else ast.List
            return make([_constant(element) for element in static], ast.Load())
        return None


def _matched(words: list[str], row: Row) -> dict[str, str]:
    """What the operator calls a function's arguments: the same, `self` for the first, or the beginning of the
    word in the same place, as `train` for `training`."""
    schema = [argument.name for argument in row.schema.arguments]
    matches = {word: word for word in words if word in schema}
    for word, other in zip(words, schema):
        if word not in matches and (other == "self" or word.startswith(other)):
            matches[word] = other
    return matches


def _constant(value: Any) -> ast.expr:
    """A constant, infinities included, which have no literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
    return ast.Constant(value)


def _operator(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load())


def _subscript(name: str, parts: list[ast.expr | None]) -> ast.expr:
    some = [part for part in parts if part is not None]
    inner = some[0] if len(some) == 1 else ast.Tuple(some, ast.Load())
    return ast.Subscript(ast.Name(name, ast.Load()), inner, ast.Load())


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "tenfold"
