"""Hooks that are noticed when they come and go, and what they are removed by."""

from __future__ import annotations

import itertools
from typing import Any

# How often hooks of modules and leaves came or went: what a compiled function was recorded with may have
# changed.
CHANGES = {"count": 0}


class Noticed(dict[int, Any]):
    """Hooks that a compiled function may depend on."""


def _noticing(name: str) -> Any:
    change = getattr(dict, name)

    def noticed(self: Noticed, *args: Any, **kwargs: Any) -> Any:
        CHANGES["count"] += 1
        return change(self, *args, **kwargs)

    return noticed


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(Noticed, _name, _noticing(_name))


class RemovableHandle:
    """Removes a hook: by `remove()`, or at the end of a `with` block."""

    _count = itertools.count()

    def __init__(self, hooks: dict[int, Any], hook: Any):
        self.id = next(RemovableHandle._count)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()
