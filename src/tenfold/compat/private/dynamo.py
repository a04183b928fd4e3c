"""`torch._dynamo`: the marks by which code tells PyTorch's compiler what to leave alone. Here a function is
recorded as it runs, so a marked one is the function itself."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import SimpleNamespace
from typing import Any

from tenfold import compiler
from tenfold.base.absent import AbsentModule
from tenfold.compiler import allow_in_graph, disable, is_compiling, mark_dynamic, mark_static, reset
from tenfold.nn.optimized import OptimizedModule

__all__ = [
    "OptimizedModule", "allow_in_graph", "config", "disable", "disallow_in_graph", "forbid_in_graph",
    "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "optimize", "reset",
]  # fmt: skip

_absent = AbsentModule.of("torch._dynamo")


class Config(SimpleNamespace):
    """Settings of PyTorch's compiler, kept and without effect."""

    def patch(self, changes: Any = None, /, *values: Any, **more: Any) -> Patched:
        """A block or a decorator inside which settings are other ones: a name and its value, or a dict."""
        named = {changes: values[0]} if isinstance(changes, str) else changes or {}
        return Patched(self, {**named, **more})


class Patched(ContextDecorator):
    """The settings that `Config.patch` changes, and what they were."""

    def __init__(self, config: Config, changes: dict[str, Any]):
        self._config = config
        self._changes = changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._before.append(dict(vars(self._config)))
        vars(self._config).update(self._changes)

    def __exit__(self, *error: object) -> None:
        vars(self._config).clear()
        vars(self._config).update(self._before.pop())


config = Config(
    cache_size_limit=8, recompile_limit=8, suppress_errors=False, verbose=False, capture_scalar_outputs=False
)
eval_frame = SimpleNamespace(OptimizedModule=OptimizedModule)
disallow_in_graph = forbid_in_graph = allow_in_graph


def graph_break(msg: str = "") -> None:
    """Does nothing: the graph of a compiled function is whole."""


maybe_mark_dynamic = mark_dynamic


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Does nothing: XLA keeps its own memory."""


def optimize(backend: Any = "inductor", **options: Any) -> Any:
    """The decorator that `tenfold.compile` is."""
    return compiler.compile


def list_backends(*args: Any) -> list[str]:
    return list(compiler.BACKENDS)


def __getattr__(name: str) -> Any:
    return getattr(compiler if name in compiler.__all__ else _absent, name)
