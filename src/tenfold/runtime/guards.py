"""Guards: the Python state that a recorded function depends on besides its arguments, such as attributes of
modules and options of optimizers. They are compared at every call."""

from __future__ import annotations

import functools
import gc
import operator
import reprlib
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tenfold.base.package import is_ours
from tenfold.ops.table import exact
from tenfold.trace import tree

Guard = tuple[Any, Any, Any]  # a container, a key, and what was there
# What may be another object of the same value; of anything else it must be the same object. What is in
# containers may change, and is compared each time.
SCALARS = frozenset([bool, int, float, complex, str])
PLAIN = SCALARS | {tuple}
# The containers whose entries are compared, and those of classes derived from them; the more special first.
CONTAINERS = (OrderedDict, dict, list, deque, set, tuple)
MANY = 100  # entries of a container that are not looked through at every call


@functools.lru_cache(maxsize=1_000)
def container_base(kind: Any) -> Any:
    """The kind of container that a class is or is derived from, or NumPy's array; None of any other class,
    and of this package's own."""
    if kind is np.ndarray:
        return kind
    return next((base for base in CONTAINERS if issubclass(kind, base) and not is_ours(kind)), None)


def _base_of(value: Any) -> Any:
    kind: Any = type(value)
    return container_base(kind)


class Contents:
    """What was in a container: plain values, and the very objects that are none."""

    __slots__ = ("_around", "objects", "structure")

    def __init__(self, container: Any):
        self.objects: list[Any] = []
        self._around: set[int] = set()
        self.structure = self._structure_of(container)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contents) or self.structure != other.structure:
            return False
        return len(self.objects) == len(other.objects) and all(map(operator.is_, self.objects, other.objects))

    def _structure_of(self, value: Any) -> Any:
        kind: Any = type(value)  # of a proxy its own: what it stands for may be gone
        if kind in SCALARS:
            if kind is float:
                value = exact(value)
                return type(value), value
            return tree.flatten(value, _never, []) if kind is complex else (kind, value)
        base = container_base(kind)
        if base is np.ndarray and value.size <= MANY and not value.dtype.hasobject:
            return kind, value.dtype, value.shape, value.tobytes()
        if base is None or base is np.ndarray or id(value) in self._around:
            self.objects.append(value)
            return tree.LEAF
        self._around.add(id(value))
        structure = self._structure_inside(value, kind, base)
        self._around.discard(id(value))
        return structure

    def _structure_inside(self, value: Any, kind: type, base: Any) -> Any:
        """What is in a container, read as its base does: a class may read otherwise, or make what is missing.
        A set is compared in the order in which it gives its entries."""
        if issubclass(base, dict):
            if issubclass(kind, defaultdict):
                self.objects.append(value.default_factory)
            keys, branches = [], []
            for key, branch in base.items(value):
                keys.append(key if type(key) is str else tree.flatten(key, _never, []))
                branches.append(self._structure_of(branch))
            return kind, tuple(keys), tuple(branches)
        first = len(self.objects)
        parts = tuple([self._structure_of(branch) for branch in base.__iter__(value)])
        if base is deque and any(map(_is_tensor, self.objects[first:])):
            # Which tensors are in a deque is looked up at each call.
            self.objects[first:] = [value, *(each for each in self.objects[first:] if not _is_tensor(each))]
        return kind, None, parts


def _never(leaf: Any) -> bool:
    return False


def _is_tensor(value: Any) -> bool:
    return hasattr(type(value), "current") and is_ours(type(value))


def contents_of(value: Any) -> Any:
    """What is to be compared of a value: of a container what is in it."""
    return Contents(value) if _changes_inside(value) else value


def is_setting(value: Any) -> bool:
    """Whether it is compared by value: it is a plain value, or a container that is not large."""
    base = _base_of(value)
    if base is None or base in (tuple, np.ndarray):
        return type(value) in SCALARS or base is not None
    return bool(base.__len__(value) <= MANY)


def _changes_inside(value: Any) -> bool:
    """Whether its contents may change while it stays the same object."""
    base = _base_of(value)
    if base is tuple:
        return any(map(_changes_inside, tuple.__iter__(value)))
    return base is not None


def hold(guards: Sequence[Guard]) -> bool:
    """Whether there is in each container, under the key, what there was."""
    try:
        for container, key, value in guards:
            current = container[key]
            if current is not value and not _is_as_it_was(current, value):
                return False
    except LookupError:
        return False
    return True


def _is_as_it_was(current: Any, value: Any) -> bool:
    """Whether two objects are the same value: 2.0 differs from 2, and -0.0 from 0.0."""
    if type(value) is Contents:
        return Contents(current) == value
    return type(value) in PLAIN and type(current) is type(value) and Contents(current) == Contents(value)


def broken(guards: Sequence[Guard]) -> Guard | None:
    """The first guard that no longer holds."""
    return next((guard for guard in guards if not hold([guard])), None)


def described(guard: Guard, owners: Owners) -> str:
    """A guard in the user's words: "`config.depth` is 3"."""
    container, key, value = guard
    name = label(container, key, owners)
    if type(value) is bool and name.startswith("whether"):
        return f"{name}: {'yes' if value else 'no'}"
    return f"{name} is {_shown(value)}"


def change(guard: Guard) -> str:
    """How what is there now differs from what a guard expects."""
    container, key, value = guard
    name = label(container, key, Owners([container]))
    try:
        return f"{name} was {_shown(value)} and is {_shown(container[key])}"
    except LookupError:
        return f"{name} was {_shown(value)} and is no longer there"


def label(container: Any, key: Any, owners: Owners) -> str:
    """What a user calls the place under a key of a container. Containers of our own say so themselves."""
    if hasattr(type(container), "label"):
        return container.label(key)
    if hasattr(container, "names_of"):
        return f"whether there is {label(container.names_of, key, owners)}"
    if isinstance(container, dict):
        if _is_module(container):
            return f"the global `{key}` of {container.get('__name__')}"
        owner = owners.of.get(id(container))
        if owner is not None:
            return f"the attribute `{key}` of a {type(owner).__qualname__}"
        entry = f"[{key!r}]" if type(key) in PLAIN else f"[a {type(key).__qualname__}]"
        if id(container) in owners.around:
            name, owner = owners.around[id(container)]
            return f"`{name}{entry}` of a {type(owner).__qualname__}"
        return f"the entry {entry} of a {type(container).__name__}"
    if isinstance(container, (tuple, list)):
        return f"entry {key} of a {type(container).__name__}"
    return f"{type(container).__name__}[{key!r}]"


class Owners:
    """The objects whose attributes dictionaries are, or are an attribute's value: by the dictionary's id.
    Python's collector looks through everything for them, so they are found for many at once."""

    def __init__(self, containers: Iterable[Any]):
        wrapped = [getattr(container, "names_of", container) for container in containers]
        dicts = {id(held): held for held in wrapped if isinstance(held, dict) and not _is_module(held)}
        self.of = _owners(dicts)
        self.around: dict[int, tuple[str, Any]] = {}
        entries = {i: entry for i, entry in dicts.items() if i not in self.of}
        outer = (
            [referrer for referrer in gc.get_referrers(*entries.values()) if isinstance(referrer, dict)]
            if entries
            else []
        )
        attributes = {id(holder): holder for holder in outer if holder is not entries}
        for i, owner in _owners(attributes).items():
            for name, value in attributes[i].items():
                if id(value) in entries:
                    self.around.setdefault(id(value), (name, owner))


def _owners(dicts: dict[int, dict[Any, Any]]) -> dict[int, Any]:
    """The objects whose attributes these dictionaries are."""
    referrers: dict[int, Any] = {}
    for referrer in gc.get_referrers(*dicts.values()) if dicts else ():
        attributes = getattr(referrer, "__dict__", None)
        if id(attributes) in dicts:
            referrers.setdefault(id(attributes), referrer)
    return referrers


def _is_module(container: dict[Any, Any]) -> bool:
    return "__builtins__" in container or sys.modules.get(container.get("__name__", "")) is not None


def _shown(value: Any) -> str:
    if type(value) is Contents:
        return f"a container with the entries it had ({len(value.objects)} of them objects)"
    if type(value) in PLAIN or value is None:
        return reprlib.repr(value)
    return f"the same {type(value).__qualname__}"
