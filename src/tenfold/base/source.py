"""Where the user's program was when it called Tenfold: cheap to capture, resolved only when it is shown.

A Source keeps a code object and an instruction of it. The file, the line, the columns and the names that the
user gave to the operands are worked out from those two when an error or a printed program asks for them.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import linecache
import os
import sys
import tokenize
from collections.abc import Sequence
from sys import _getframe
from types import CodeType, FrameType, ModuleType


class Source(tuple[CodeType, int]):
    """A place in the user's program: (code object, byte offset of the instruction that was running).

    A tuple subclass, because that is the fastest object to make that can still carry methods.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self[0] is other[0] and self._instruction == other._instruction

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((id(self[0]), self._instruction))

    def __repr__(self) -> str:
        return f"<Source {self.short}>"

    @property
    def _instruction(self) -> int:
        # The interpreter leaves f_lasti on the instruction or, once it has specialised it, on one of the
        # inline cache entries that follow (opcode 0): the two are one place.
        code, lasti = self
        opcodes = code.co_code
        while opcodes[lasti] == 0:
            lasti -= 2
        return lasti

    @property
    def filename(self) -> str:
        return self[0].co_filename

    @property
    def line(self) -> int:
        return _position(self)[0] or self[0].co_firstlineno

    @property
    def end_line(self) -> int:
        return _position(self)[1] or self.line

    @property
    def columns(self) -> tuple[int, int] | None:
        """Where the expression starts in `line` and ends in `end_line`: from 0, in UTF-8 bytes."""
        _, _, start, end = _position(self)
        return None if start is None or end is None else (start, end)

    @property
    def text(self) -> str:
        """The line without its indentation, or "" when no source is to be had."""
        return _line(self).strip()

    @property
    def short(self) -> str:
        return f"{short_name(self.filename)}:{self.line}"

    def span(self) -> tuple[int, int] | None:
        """The characters of `text` that the expression covers, to the end of the code if it goes on below."""
        raw = _line(self).rstrip()
        indent = len(raw) - len(raw.lstrip())
        if self.columns is None:
            return None
        columns, end_line = self.columns, self.end_line
        node = _expression(self, _parse("".join(_lines(self))))
        if isinstance(node, ast.expr) and node.lineno == self.line:
            columns, end_line = (node.col_offset, node.end_col_offset or 0), node.end_lineno or 0
        encoded = raw.encode("utf-8", "replace")
        start, end = (len(encoded[:column].decode(errors="ignore")) for column in columns)
        if end_line != self.line:
            end = _end_of_code(raw, start)
        # Otherwise the file is no longer the one that was compiled.
        return (start - indent, end - indent) if indent <= start < end else None

    def operand_names(self, op: str, arguments: Sequence[str | None]) -> list[str | None]:
        """What the user's expression calls each operand of `op`, None where it does not say.

        `arguments` has, for each operand, the name of the argument it was passed as, where that is known.
        """
        lines = _lines(self)
        text = "".join(lines)
        tree = _parse(text)
        if not tree.body:  # a document, of which this is one example
            text = "\n" * (self.line - 1) + "".join(lines[self.line - 1 : self.end_line])
            tree = _parse(text)
        node = _expression(self, tree)
        if node is None:
            return [None] * len(arguments)
        found = _operands(node, tree, op.rpartition("::")[2].partition(".")[0].strip("_"), arguments)
        return [ast.get_source_segment(text, part) if part else None for part in found]


def capture(depth: int = 1) -> Source | None:
    """The nearest place outside Tenfold, from `sys._getframe(depth)` outwards; None where there is none.

    Depth 1 is the caller. A caller that knows how many of the frames above are Tenfold's own passes more.
    """
    frame: FrameType | None = _getframe(depth)
    while frame is not None:
        code = frame.f_code
        if not _is_internal[code.co_filename]:
            return Source((code, frame.f_lasti))
        frame = frame.f_back
    return None


def internal(filename: str) -> None:
    """Count `filename`, such as that of code generated for the operators, as Tenfold's own."""
    _is_internal[filename] = True


def is_internal(filename: str) -> bool:
    """Whether a file is Tenfold's own."""
    return _is_internal[filename]


def short_name(filename: str) -> str:
    """A file's name without its folder; of a notebook's cell the notebook's own name, such as `In[4]`."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    cell = shell.compile.format_code_name(filename) if shell is not None else None
    return cell[1] if cell is not None else os.path.basename(filename)


GLUE = (contextlib.__file__, functools.__file__)


class _Internal(dict[str, bool]):
    """Whether a file is Tenfold's own, decided once for each file name."""

    package = os.path.dirname(os.path.dirname(__file__)) + os.sep

    def __missing__(self, filename: str) -> bool:
        # "<frozen runpy>" and the import system are nobody's program either, nor is what calls our own
        # context managers.
        self[filename] = answer = filename.startswith((self.package, "<frozen ")) or filename in GLUE
        return answer


_is_internal = _Internal()

# Each code object's positions, by its identity; the object is kept with them so that its id stays its own.
_positions: dict[int, tuple[CodeType, list[tuple[int | None, int | None, int | None, int | None]]]] = {}


def _position(source: Source) -> tuple[int | None, int | None, int | None, int | None]:
    code, lasti = source
    held = _positions.get(id(code))
    if held is None:
        if len(_positions) >= 64:
            _positions.clear()
        held = _positions[id(code)] = (code, list(code.co_positions()))
    return held[1][lasti // 2]


def _lines(source: Source) -> list[str]:
    linecache.checkcache(source.filename)
    return linecache.getlines(source.filename)


def _line(source: Source) -> str:
    lines = _lines(source)
    return lines[source.line - 1] if source.line <= len(lines) else ""


def _end_of_code(line: str, start: int) -> int:
    """Where the code that begins at `start` stops, before any comment that ends the line."""
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)
    end = start
    try:
        for token in tokenize.generate_tokens(iter([line[start:].removesuffix("\\")]).__next__):
            if token.type not in blank and token.start[0] == 1:
                end = start + token.end[1]
    except (tokenize.TokenError, SyntaxError):
        pass  # The expression goes on in the next line.
    return end


# From here on: which parts of the user's expression were the operands.


@functools.lru_cache(maxsize=4)
def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])  # Changed since it was compiled, or not Python at all.


@functools.lru_cache(maxsize=64)
def _expression(source: Source, tree: ast.Module) -> ast.AST | None:
    if source.columns is None:
        return None
    start, end = (source.line, source.columns[0]), (source.end_line, source.columns[1])
    ending_here = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr | ast.stmt) or (node.end_lineno, node.end_col_offset) != end:
            continue
        if (node.lineno, node.col_offset) == start and not isinstance(node, ast.Expr):
            match node:  # Python 3.11 marks the whole statement when it is the test that is running.
                case ast.If(part) | ast.While(part) | ast.Assert(part) | ast.IfExp(part) | ast.For(_, part):
                    return part
            return node
        # Of `(x\n .sum())` the interpreter keeps the part from the name `sum` on.
        if isinstance(node, ast.Call | ast.Attribute):
            ending_here = node
    return ending_here


_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("add",),
    ast.Sub: ("sub",),
    ast.Mult: ("mul",),
    ast.Div: ("div",),
    ast.FloorDiv: ("floor_divide",),
    ast.Mod: ("remainder",),
    ast.Pow: ("pow",),
    ast.MatMult: ("matmul",),
    ast.LShift: ("bitwise_left_shift", "lshift"),
    ast.RShift: ("bitwise_right_shift", "rshift"),
    ast.BitAnd: ("bitwise_and", "and"),
    ast.BitOr: ("bitwise_or", "or"),
    ast.BitXor: ("bitwise_xor", "xor"),
    ast.Eq: ("eq",),
    ast.NotEq: ("ne",),
    ast.Lt: ("lt",),
    ast.LtE: ("le",),
    ast.Gt: ("gt",),
    ast.GtE: ("ge",),
    ast.USub: ("neg",),
    ast.Invert: ("bitwise_not",),
}


def _operands(
    node: ast.AST, tree: ast.Module, op: str, arguments: Sequence[str | None]
) -> Sequence[ast.expr | None]:
    """The node of each operand, where the expression is a use of `op` itself.

    One that calls a layer, in which `op` then failed, says nothing about the operands of `op`.
    """
    parts: list[ast.expr]
    keywords: dict[str | None, ast.expr] = {}
    first_is_sure = False  # Whether the first part is the first operand, whatever the others are.
    match node:
        case ast.BinOp(left, ast.Sub(), right) if op == "rsub":
            parts = [right, left]
        case ast.BinOp(left, operator, right) | ast.AugAssign(left, operator, right):
            parts = [left, right] if op in _OPERATORS[type(operator)] else []
        case ast.Compare(left, [operator], [right]):
            parts = [left, right] if op in _OPERATORS.get(type(operator), ()) else []
        case ast.UnaryOp(ast.Not(), operand):
            parts = [operand]
        case ast.UnaryOp(operator, operand):
            parts = [operand] if op in _OPERATORS.get(type(operator), ()) else []
        case ast.Subscript(value, index):
            parts = [value, *(index.elts if isinstance(index, ast.Tuple) else [index])]
            first_is_sure = True
            if isinstance(node.ctx, ast.Store):
                parts = [*([node] if op == "copy" else parts), *_assigned(node, tree)]
        case ast.Name():
            parts = [node]  # `if x:` or `for row in x:`
        case ast.Tuple(ctx=ast.Store()):
            parts = _assigned(node, tree)
        case ast.Attribute(value, name):
            parts = [value] if _is_name_of(name, op) else []
        case ast.Call(ast.Attribute(value, name), given, named) if _is_name_of(name, op):
            parts = [value, *given] if _may_be_tensor(value, tree, arguments) else given
            keywords = {keyword.arg: keyword.value for keyword in named}
        case ast.Call(ast.Name(name), parts, named) if _is_name_of(name, op):
            keywords = {keyword.arg: keyword.value for keyword in named}
        case _:
            parts = []
    return _assign(parts, keywords, arguments, first_is_sure)


def _assign(
    parts: Sequence[ast.expr],
    keywords: dict[str | None, ast.expr],
    arguments: Sequence[str | None],
    first_is_sure: bool,
) -> Sequence[ast.expr | None]:
    """Give each operand its part: by keyword, then in order if there are as many parts as operands."""
    operands = [keywords.get(name) if name else None for name in arguments]
    unnamed = [i for i, operand in enumerate(operands) if operand is None]
    if len(parts) == 1 and isinstance(parts[0], ast.List | ast.Tuple):
        parts = parts[0].elts  # `cat([x, y])`
    tensors = [part for part in parts if not _is_plainly_no_tensor(part)]
    if len(tensors) == len(unnamed) and not any(isinstance(part, ast.Starred) for part in tensors):
        for i, part in zip(unnamed, tensors, strict=True):
            operands[i] = part
    elif first_is_sure and unnamed:
        operands[unnamed[0]] = parts[0]
    return operands


def _assigned(target: ast.expr, tree: ast.Module) -> list[ast.expr]:
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Assign) and target in node.targets)
    return [statement.value for statement in statements]


def _is_name_of(name: str, op: str) -> bool:
    """`add_` and `add` name the op `add`; so does `norm`, of `linalg.norm`, the op `linalg_norm`."""
    name = name.strip("_")
    return op == name or op.endswith(f"_{name}")


def _is_plainly_no_tensor(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.Slice() | ast.JoinedStr():
            return True
        case ast.UnaryOp(_, operand):
            return _is_plainly_no_tensor(operand)
        case ast.List(elements) | ast.Tuple(elements):
            return all(map(_is_plainly_no_tensor, elements))
    return False


def _may_be_tensor(node: ast.expr, tree: ast.Module, arguments: Sequence[str | None]) -> bool:
    """Whether `node`, in `node.op(...)`, can be the first operand; not if it is a module or holds a layer."""
    if arguments and arguments[0] not in (None, "self"):
        return False  # An op whose first argument is not `self`, such as `linear`, is no method of tensors.
    if isinstance(node, ast.Name) and node.id in ("self", "cls"):
        return False
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return True
    statements = (part for part in ast.walk(tree) if isinstance(part, ast.Import | ast.ImportFrom))
    imported = (alias for statement in statements for alias in statement.names)
    if any((alias.asname or alias.name.partition(".")[0]) == node.id for alias in imported):
        return False
    # A notebook imports in one cell what it uses in another.
    session = sys.modules["__main__"]
    return hasattr(session, "__file__") or not isinstance(getattr(session, node.id, None), ModuleType)
