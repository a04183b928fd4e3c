"""Hooks that are noticed when they come and go, what they are removed by, and edges of the graph."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple


class _Changes(dict[str, int]):
    """How often hooks of modules and leaves, and attributes in the place of a module's methods, came or went:
    a compiled function depends on it."""

    def label(self, name: str) -> str:
        return "the count of changes of hooks, and of methods set on modules,"


CHANGES = _Changes(count=0)


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

    def __init__(self, hooks_dict: Any, hook: Any = None, *, extra_dict: Any = None):
        """A handle for a hook in `hooks_dict`, and for what `extra_dict`, or several such, know of it.
        Without a `hook`, whoever makes the handle puts one there, under its `id`."""
        self.id = next(RemovableHandle._count)
        several = extra_dict if isinstance(extra_dict, (list, tuple)) else (extra_dict,)
        self._hooks = [hooks_dict, *[extra for extra in several if extra is not None]]
        if hook is not None:
            hooks_dict[self.id] = hook

    def hooks_dict_ref(self) -> Any:
        """The dictionary that the hook is in, under this handle's `id`."""
        return self._hooks[0]

    def remove(self) -> None:
        for hooks in self._hooks:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


class HandleOfSeveral:
    """What removes a hook of several tensors, from all of them."""

    def __init__(self, handles: Sequence[RemovableHandle]):
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> HandleOfSeveral:
        return self

    def __exit__(self, *raised: object) -> None:
        self.remove()


class GradientEdge(NamedTuple):
    """Which result of which node of the graph a tensor is."""

    node: Any
    output_nr: int
