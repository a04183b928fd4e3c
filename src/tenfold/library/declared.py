"""Ops that are declared first and implemented afterwards: `Library`, `define` and `impl`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.library.custom import CustomOpDef
from tenfold.ops import kernels

# What was declared, and what was said of ops that are not implemented yet.
SCHEMAS: dict[str, str] = {}
FAKES: dict[str, Callable[..., Any]] = {}
AUTOGRADS: dict[str, Callable[..., Any]] = {}
# Keys of PyTorch's under which values are computed, under which a function is called on tensors in the op's
# place, and under which it may call the op in turn, to add a gradient.
_COMPUTING = ("", "default", "cpu", "cuda", "compositeexplicitautograd")
_COMPOSITE = "compositeimplicitautograd"
_AUTOGRAD = ("autograd", "autogradcpu", "autogradcuda")


@located
def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declare an op, as in `define("mylib::scaled", "(Tensor x, float by) -> Tensor")`."""
    SCHEMAS[qualname] = schema


@located
def impl(qualname: str, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Implement a declared op by a function; `types` is one or several types of devices, or "default"."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        keys = types if isinstance(types, (tuple, list)) else [types]
        names = [str(key or "").lower() for key in keys]
        if "meta" in names:
            FAKES[qualname] = function
        if any(name in _AUTOGRAD for name in names):
            AUTOGRADS[qualname] = function
            if qualname in kernels.PYTHON_KERNELS:
                _call_instead(qualname, function)
        if _COMPOSITE in names:
            _implement(qualname, function)
            _call_instead(qualname, function)
        elif any(name in _COMPUTING for name in names):
            _implement(qualname, function)
        return function

    return register if func is None else register(func)


def _implement(name: str, function: Callable[..., Any]) -> None:
    if name not in SCHEMAS:
        raise ArgumentError(f"{name} was not declared", help="declare it with tenfold.library.define")
    made = CustomOpDef(name, function, f"{name}{SCHEMAS[name]}")
    if name in FAKES:
        made.register_fake(FAKES[name])
    if name in AUTOGRADS:
        _call_instead(name, AUTOGRADS[name])


def _call_instead(name: str, function: Callable[..., Any]) -> None:
    """Call a function in an op's place; where that calls the op, the op's kernel runs."""
    row = kernels.PYTHON_KERNELS[name].__self__.row  # type: ignore[attr-defined]
    count = len(row.schema.positional)
    names = [argument.name for argument in row.schema.keyword_only]
    calling = threading.local()

    def instead(*arguments: Any) -> Any:
        if getattr(calling, "inside", False):
            return NotImplemented
        calling.inside = True
        try:
            return function(*arguments[:count], **dict(zip(names, arguments[count:], strict=True)))
        finally:
            calling.inside = False

    row.instead = instead


class Library:
    """The ops of a namespace, for declaring (`kind` "DEF") or implementing ("IMPL") them one by one."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare an op by its schema."""
        name, _, rest = schema.partition("(")
        define(f"{self.ns}::{name.strip()}", f"({rest}")
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **options: Any) -> None:
        """Implement an op by a function."""
        name = op_name if isinstance(op_name, str) else str(op_name.__name__).partition(".")[0]
        impl(name if "::" in name else f"{self.ns}::{name}", dispatch_key or self.dispatch_key, fn)


def opcheck(op: Any, args: Sequence[Any], kwargs: Any = None, **options: Any) -> dict[str, str]:
    """Check an op by calling it once."""
    op(*args, **(kwargs or {}))
    return {"test_schema": "SUCCESS"}
