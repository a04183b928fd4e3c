"""The table of what functions do to sparse tensors, by the names of the functions.

A rule computes with the parts of sparse tensors; `tensors.py` looks it up when a function is given one. The
rules themselves are in `rules.py`, `arithmetic.py`, `movements.py` and `products.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tenfold.tensor.questions import Described

Rule = TypeVar("Rule", bound=Callable[..., Any])

# What a function does to sparse tensors, by its name; it is called with the function's own arguments.
RULES: dict[str, Callable[..., Any]] = {}
# Rules that take compressed tensors as they are. The others get them as coordinates.
BY_VALUES: set[str] = set()
# What every tensor answers from its shape, dtype and device, and not from where its elements lie.
_PLACED = {"layout", "stride", "storage_offset", "is_contiguous"}
DESCRIBED = frozenset(vars(Described)) - _PLACED | {"__len__", "is_same_size", "output_nr", "_version"}


def rule(*names: str, by_values: bool = False) -> Callable[[Rule], Rule]:
    """Declare what functions of these names do."""

    def declare(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        if by_values:
            BY_VALUES.update(names)
        return function

    return declare


def called(func: Any) -> str:
    """The name of a function, a method or a property."""
    name: str = getattr(func, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        return str(func.__self__.fget.__name__)
    return name
