"""Nested containers taken apart and put together again: lists, tuples, named tuples, dicts, sets, deques,
slices, and objects that are known by their attributes, as dataclasses and namespaces."""

from __future__ import annotations

import reprlib
from collections import defaultdict, deque
from collections.abc import Callable
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.package import is_ours
from tenfold.ops.table import exact

PLAIN = frozenset([int, float, bool, str, type(None)])  # which hold nothing, and are the most


class Leaf:
    """Stands in a structure for a value that is kept apart; one object, compared by identity."""

    def __repr__(self) -> str:
        return "*"


LEAF = Leaf()


class ByBits:
    """A number in a form that compares by its bits: -0.0 equals 0.0, and NaN not even itself."""

    __slots__ = ("bits", "number")

    def __init__(self, number: Any):
        self.number = number
        array = np.asarray(number)
        self.bits = array.dtype, array.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByBits) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    def __repr__(self) -> str:
        return repr(self.number)


class Defaulting(NamedTuple):
    """A kind of dict that makes what is missing, and how it does."""

    kind: type
    factory: Any

    def __call__(self) -> Any:
        return self.kind(self.factory)


class Bounded(NamedTuple):
    """A kind of deque, and how much it holds at most."""

    kind: type
    maxlen: int | None

    def __call__(self, elements: list[Any]) -> Any:
        return self.kind(elements, self.maxlen)


class Attributes(NamedTuple):
    """A kind of object that is known by its attributes."""

    kind: Any

    def made(self, names: tuple[str, ...], values: list[Any]) -> Any:
        if self.kind is SimpleNamespace:
            return SimpleNamespace(**dict(zip(names, values, strict=True)))
        instance = object.__new__(self.kind)
        for name, value in zip(names, values, strict=True):
            object.__setattr__(instance, name, value)  # it may be frozen
        return instance


def flatten(tree: Any, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> Any:
    """Append the leaves in order, and return a hashable structure that holds everything else."""
    if is_leaf(tree):
        leaves.append(tree)
        return LEAF
    kind = type(tree)  # of a proxy its own: what it stands for may be gone
    if issubclass(kind, (dict, MappingProxyType)):
        parts = tuple([flatten(branch, is_leaf, leaves) for branch in tree.values()])
        made_by = Defaulting(kind, tree.default_factory) if issubclass(kind, defaultdict) else kind
        return made_by, tuple([key if type(key) is str else _key(key) for key in tree]), parts
    if issubclass(kind, (tuple, list)):
        return kind, None, tuple([flatten(branch, is_leaf, leaves) for branch in tree])
    if kind not in PLAIN:
        if kind is slice:
            bounds = (tree.start, tree.stop, tree.step)
            return kind, None, tuple([flatten(bound, is_leaf, leaves) for bound in bounds])
        if issubclass(kind, (set, frozenset, deque)):
            filled = Bounded(kind, tree.maxlen) if issubclass(kind, deque) else kind
            return filled, None, tuple([flatten(each, is_leaf, leaves) for each in tree])
        if _has_attributes(kind):
            own = attributes(tree)
            parts = tuple([flatten(value, is_leaf, leaves) for value in own.values()])
            return Attributes(kind), tuple(own), parts
    # 1, 1.0 and True are equal, and so are 0.0 and -0.0: the type tells them apart.
    if kind is float:
        value = exact(tree)
        return kind, value if type(value) is float else ByBits(tree)
    return kind, ByBits(tree) if issubclass(kind, (float, complex, np.generic)) else tree


def is_object(value: Any) -> bool:
    """Whether it is taken apart by its attributes."""
    return type(value) not in PLAIN and _has_attributes(type(value))


def kinds(structure: Any) -> dict[type, None]:
    """The classes of all containers in a structure that `flatten` gave."""
    found: dict[type, None] = {}
    if structure is not LEAF and len(structure) == 3:
        found[getattr(structure[0], "kind", structure[0])] = None
        for part in structure[2]:
            found |= kinds(part)
    return found


def _has_attributes(kind: Any) -> bool:
    """Whether two objects of a class are compared by their attributes, and it can be made of these alone."""
    if kind is SimpleNamespace:
        return True
    compared = hasattr(kind, "__dataclass_fields__") and kind.__hash__ is not object.__hash__
    return compared and kind.__new__ is object.__new__ and not is_ours(kind)


def attributes(instance: Any) -> dict[str, Any]:
    """Those that such an object is taken apart into."""
    fields = getattr(type(instance), "__dataclass_fields__", ())
    found = {name: getattr(instance, name) for name in fields if hasattr(instance, name)}
    return found | getattr(instance, "__dict__", {})


def _key(key: Any) -> Any:
    """A dict's key as a structure of its own: as keys 1 and True are the same, as arguments they are not."""
    return flatten(key, lambda leaf: False, [])


def difference(before: Any, now: Any) -> tuple[tuple[Any, ...], str, str]:
    """Where two unequal structures that `flatten` gave differ first, as places and keys from the outside in,
    and what each has there."""
    if before is not LEAF and now is not LEAF and len(before) == len(now) == 3 and before[:2] == now[:2]:
        _, keys, branches = before
        for i, (mine, theirs) in enumerate(zip(branches, now[2], strict=False)):
            if mine != theirs:
                path, was, is_now = difference(mine, theirs)
                return (keys[i] if keys else i, *path), was, is_now
    return (), _shown(before), _shown(now)


def _shown(structure: Any) -> str:
    if structure is LEAF:
        return "a tensor"
    kind, *rest = structure
    kind = getattr(kind, "kind", kind)
    if len(rest) == 1:
        return reprlib.repr(rest[0])
    return f"a {getattr(kind, '__name__', 'dict')} of {len(rest[1])}"


def other_type(structure: Any) -> type | None:
    """The type of the first value in a structure that is neither a leaf nor a container; None if all are."""
    if structure is LEAF:
        return None
    if len(structure) == 2:
        return structure[0]
    return next((kind for part in structure[2] if (kind := other_type(part)) is not None), None)


def unflatten(structure: Any, leaves: Any) -> Any:
    """The inverse of `flatten`; `leaves` is an iterator."""
    if structure is LEAF:
        return next(leaves)
    if len(structure) == 2:
        value = structure[1]
        return value.number if type(value) is ByBits else value
    kind, keys, parts = structure
    built = [unflatten(part, leaves) for part in parts]
    if type(kind) is Attributes:
        return kind.made(keys, built)
    if keys is not None:
        mapping = {} if kind is MappingProxyType else kind()
        for key, value in zip(keys, built, strict=True):  # a Counter's `update` counts
            mapping[key if type(key) is str else unflatten(key, iter(()))] = value
        return kind(mapping) if kind is MappingProxyType else mapping
    spread = kind is slice or (isinstance(kind, type) and hasattr(kind, "_fields"))
    return kind(*built) if spread else kind(built)
