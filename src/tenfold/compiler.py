"""`tenfold.compiler`: PyTorch's marks for compiled functions, and whether one is being recorded."""

from __future__ import annotations

from typing import Any

from tenfold.errors import unknown_name
from tenfold.program import compile
from tenfold.trace import graph

__all__ = ["compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_exporting", "reset"]


def is_compiling() -> bool:
    """Whether a function is being recorded, by `tenfold.compile` for example."""
    return graph.active() is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether a function is being recorded by `tenfold.export`."""
    return graph.active() is not None and graph.mode.exporting


def disable(fn: Any = None, recursive: bool = True, **kwargs: Any) -> Any:
    """The function itself: what runs inside a compiled function is recorded with it."""
    return fn if callable(fn) else lambda function: function


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no graphs of CUDA's to begin."""


def reset() -> None:
    """Nothing: compiled programs are found by what they compute, and never stale."""


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.compiler", name, globals())
