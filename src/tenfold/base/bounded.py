"""Memory of what was worked out before, with a bound: a long run meets ever new shapes."""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")

BOUND = 2048


def remember(known: dict[Key, Result], key: Key, result: Result, bound: int = BOUND) -> Result:
    """Keep a result; when there are more than the bound, the older half goes."""
    known[key] = result
    if len(known) > bound:
        for each in list(known)[: len(known) // 2]:
            known.pop(each, None)  # another thread may have been here
    return result
