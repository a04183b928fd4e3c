"""`torch._dynamo`: the marks by which code tells PyTorch's compiler what to leave alone. Here a function is
recorded as it runs, so a marked one is the function itself."""

from __future__ import annotations

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

config = SimpleNamespace(
    cache_size_limit=8, recompile_limit=8, suppress_errors=False, verbose=False, capture_scalar_outputs=False
)
eval_frame = SimpleNamespace(OptimizedModule=OptimizedModule)
disallow_in_graph = forbid_in_graph = allow_in_graph


def graph_break(msg: str = "") -> None:
    """Nothing: the graph of a compiled function is whole."""


maybe_mark_dynamic = mark_dynamic


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Nothing: XLA keeps its own memory."""


def optimize(backend: Any = "inductor", **options: Any) -> Any:
    """The decorator that `tenfold.compile` is."""
    return compiler.compile


def list_backends(*args: Any) -> list[str]:
    return list(compiler.BACKENDS)


def __getattr__(name: str) -> Any:
    return getattr(compiler if name in compiler.__all__ else _absent, name)
