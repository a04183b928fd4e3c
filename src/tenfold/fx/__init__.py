"""`tenfold.fx`: programs as graphs of Python calls. What marks code for it is here."""

from __future__ import annotations

from typing import Any

from tenfold.base.absent import AbsentModule

__all__ = ["wrap"]

_absent = AbsentModule.of("torch.fx")


def wrap(fn_or_name: Any) -> Any:
    """Mark a function as one call of a graph, whatever it does inside."""
    return fn_or_name


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
