"""Stubs for editors and type checkers, written from the table, which has every signature.

`write(folder)` makes `.pyi` files for `tenfold`, `Tensor`, `nn.functional`, `linalg`, `fft` and `special`,
and for the ops of the torch dialect that `module_context` builds. They are made when the package is built and
installed with it, so they are in no repository.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenfold.base.dtypes import DType
from tenfold.command.stubs import dialect
from tenfold.command.stubs.hints import PRELUDE, Hints
from tenfold.ops.schema import Schema
from tenfold.ops.signatures import overloads, result_class
from tenfold.ops.table import TABLE, Row, all_rows
from tenfold.tensor import Tensor
from tenfold.tensor.documentation import Docstring
from tenfold.tensor.operators import AUGMENTED, OPERATORS, PROPERTIES, REFLECTED

__all__ = ["MODULES", "write"]

MODULES = ("tenfold", "tenfold.linalg", "tenfold.fft", "tenfold.special", "tenfold.nn.functional")
CLASS = "tenfold.tensor.tensor"
# `__getattr__` is there to say which name was meant: to a type checker, every name would be known.
_HIDDEN = ("__slots__", "__dict__", "__weakref__", "__getattr__", "__annotations__", "__module__", "__doc__")
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def write(folder: Path) -> list[Path]:
    """The stubs, under a folder that stands for the one which holds the package."""
    texts = {**{module: module_text(module) for module in MODULES}, CLASS: class_text()}
    texts[dialect.MODULE] = dialect.dialect_text()
    paths = []
    for module, text in texts.items():
        inside = Path(*module.split("."))
        package = hasattr(importlib.import_module(module), "__path__")
        path = folder / (inside / "__init__.pyi" if package else inside.with_suffix(".pyi"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


# Modules


def module_text(module: str) -> str:
    """The stub of a module: functions of the table with their overloads, and all else by where it is from."""
    loaded = importlib.import_module(module)
    hints = Hints(module)
    lines: list[str] = []
    for name in sorted(_public(loaded)):
        lines += _member(name, getattr(loaded, name), module, hints)
    classes = sorted(
        {result_class(row) for row in all_rows() if _has_class(row)} & set(_words("\n".join(lines)))
    )
    imports = (
        [f"from {CLASS} import Tensor as Tensor"] if module == "tenfold" else [f"from {CLASS} import Tensor"]
    )
    imports += [f"from {CLASS} import {each} as {each}" for each in classes]
    return "\n".join([PRELUDE, *imports, *sorted(hints.imports.values()), "", *lines, ""])


def _public(module: Any) -> list[str]:
    names = [each for each in dir(module) if not each.startswith("_")]
    return [name for name in names if name not in ("Any", "Tensor", "TYPE_CHECKING", "annotations")]


def _member(name: str, each: Any, module: str, hints: Hints) -> Iterator[str]:
    if isinstance(each, types.ModuleType):
        parent, _, last = each.__name__.rpartition(".")
        if each.__name__.startswith("tenfold."):
            yield from _exported(parent, last, name)
    elif isinstance(each, types.FunctionType):
        yield from _function(name, each, module, hints)
    elif isinstance(each, type):
        if each.__name__ in _written(each.__module__):
            yield from _exported(each.__module__, each.__name__, name)
        else:
            yield f"{name}: _type[_Any]"
    elif isinstance(each, DType):
        yield f"{name}: _DType"
    elif each is None:
        yield f"{name}: None"
    else:
        yield f"{name}: {hints.text(type(each))}"


def _function(name: str, each: types.FunctionType, module: str, hints: Hints) -> Iterator[str]:
    if isinstance(each.__doc__, Docstring):
        rows = [row for row in _rows(each) if row.function]
        yield from _defined(name, overloads(rows or _rows(each), method=False), str(each.__doc__))
        return
    written_in = inspect.unwrap(each).__module__
    if written_in not in MODULES and each.__name__ in _written(written_in):
        yield from _exported(written_in, each.__name__, name)
        return
    base = TABLE.get(name.removesuffix("_"))
    if name.endswith("_") and base is not None and "<locals>" in inspect.unwrap(each).__code__.co_qualname:
        rows = [row for row in base if row.inplace] or base
        yield from _defined(name, overloads(rows, method=False, writes=True), each.__doc__ or "")
    else:
        yield from _defined(name, [hints.signature(each)], each.__doc__ or "")


def _exported(module: str, theirs: str, ours: str) -> Iterator[str]:
    """A name of another module. Under a name that is not its own, type checkers take it for private."""
    if theirs == ours:
        yield f"from {module} import {theirs} as {ours}"
    else:
        yield f"from {module} import {theirs} as _{ours}"
        yield f"{ours} = _{ours}"


@functools.cache
def _written(module: str) -> frozenset[str]:
    """The functions and classes that stand in a module's source, and not merely in its namespace."""
    if module == "torch":  # what pickles name so, such as storages: PyTorch need not be there
        return frozenset()
    source = Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8")
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(each.name for each in ast.parse(source).body if isinstance(each, kinds))


def _rows(function: types.FunctionType) -> list[Row]:
    """The rows that a function of the table was made of."""
    rows = inspect.getclosurevars(function).nonlocals["rows"]
    return list(rows() if callable(rows) else rows)


def _defined(name: str, signatures: list[str], doc: str, indent: str = "", note: str = "") -> Iterator[str]:
    """A function, or its overloads; the first has the docstring."""
    for i, signature in enumerate(signatures):
        if len(signatures) > 1:
            yield f"{indent}@_overload"
        if i or not doc.strip():
            yield f"{indent}def {name}{signature}: ...{note}"
        else:
            yield f"{indent}def {name}{signature}:{note}"
            body = doc.strip().replace("\\", "\\\\").replace('"""', "'''").splitlines()
            end = '"""' if len(body) == 1 else f'\n{indent}    """'
            text = "\n".join(f"{indent}    {line}" if j and line else line for j, line in enumerate(body))
            yield f'{indent}    """{text}{end}'


# The Tensor


def class_text() -> str:
    """The stub of `Tensor`, with the classes of several results that have names."""
    hints = Hints(CLASS)
    lines = ["class Tensor:"]
    for name, each in sorted(inspect.getmembers_static(Tensor)):
        if each is not getattr(object, name, None) and name not in _HIDDEN:
            lines += _attribute(name, each, hints)
    others: list[str] = []
    loaded = importlib.import_module(CLASS)
    for name, each in sorted(vars(loaded).items()):
        if name != "Tensor" and getattr(each, "__module__", "") == CLASS and not name.startswith("_"):
            others += _other(name, each, hints)
    imports = sorted(hints.imports.values())
    return "\n".join([PRELUDE, *imports, "", *_classes(), *lines, "", *others, ""])


def _other(name: str, each: Any, hints: Hints) -> Iterator[str]:
    if isinstance(each, types.FunctionType):
        yield from _defined(name, [hints.signature(each)], each.__doc__ or "")
    elif isinstance(each, type):
        yield f"class {name}:\n    def __getattr__(self, name: _str) -> _Any: ..."


def _has_class(row: Row) -> bool:
    return len(row.schema.returns) > 1 and all(each.name for each in row.schema.returns)


def _classes() -> Iterator[str]:
    made: dict[str, Schema] = {}
    for row in all_rows():
        if _has_class(row):
            made.setdefault(result_class(row), row.schema)
    for name, schema in sorted(made.items()):
        yield f"class {name}(_NamedTuple):"
        for each in schema.returns:
            yield f"    {each.name}: {'tuple[Tensor, ...]' if each.type.is_list else 'Tensor'}"
        yield ""


def _attribute(name: str, each: Any, hints: Hints) -> Iterator[str]:
    indent = "    "
    if name in OPERATORS or name in AUGMENTED or name in REFLECTED:
        yield from _operator(name)
    elif isinstance(each, property):
        result = (
            "Tensor"
            if name in PROPERTIES
            else hints.signature(each.fget).rpartition(" -> ")[2]
            if each.fget
            else ""
        )
        yield f"{indent}@property"
        yield from _defined(
            name, [f"(self) -> {result}"], each.__doc__ or "" if name not in PROPERTIES else "", indent
        )
        if each.fset is not None:
            yield f"{indent}@{name}.setter"
            yield f"{indent}def {name}(self, value: _Any) -> None: ..."
    elif isinstance(each, (staticmethod, classmethod)):
        yield f"{indent}@{type(each).__name__}"
        yield from _defined(name, [_signature(name, each.__func__, hints)], each.__doc__ or "", indent)
    elif isinstance(each, types.FunctionType):
        yield from _method(name, each, hints)
    elif not name.startswith("__") and not isinstance(each, types.MemberDescriptorType):
        yield f"{indent}{name}: {hints.text(type(each))}"
    elif isinstance(each, types.MemberDescriptorType):
        yield f"{indent}{name}: _Any"
    elif name == "__hash__" and each is None:
        yield f"{indent}__hash__: None"


def _method(name: str, each: types.FunctionType, hints: Hints) -> Iterator[str]:
    qualified, indent = each.__code__.co_qualname, "    "
    if isinstance(each.__doc__, Docstring):
        yield from _defined(name, overloads(_rows(each), method=True), str(each.__doc__), indent)
    elif qualified == "inplace_method.<locals>.write":
        rows = [row for row in TABLE[name.removesuffix("_")] if row.inplace]
        yield from _defined(name, overloads(rows, method=True, writes=True), each.__doc__ or "", indent)
    elif qualified == "refusing.<locals>.call":
        yield f"{indent}def {name}(self, *args: _Any, **kwargs: _Any) -> _NoReturn: ..."
    else:
        yield from _defined(name, [_signature(name, each, hints)], each.__doc__ or "", indent)


def _signature(name: str, function: Any, hints: Hints) -> str:
    signature = hints.signature(function)
    if name in ("__init__", "__init_subclass__"):
        return signature.rpartition(" -> ")[0] + " -> None"
    return signature


def _operator(name: str) -> Iterator[str]:
    if name in OPERATORS and OPERATORS[name] in ("neg", "positive", "abs", "bitwise_not"):
        yield f"    def {name}(self) -> Tensor: ..."
        return
    note = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    other = "Tensor | _Number | _np.ndarray[_Any, _Any]" if name in _COMPARISONS else "Tensor | _Number"
    yield f"    def {name}(self, other: {other}) -> Tensor: ...{note}"


def _words(text: str) -> list[str]:
    return [word.strip("()[],:") for word in text.replace("->", " ").split()]
