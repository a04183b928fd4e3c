"""Nested containers taken apart and put together again: lists, tuples, named tuples, dicts."""

from __future__ import annotations

import reprlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenfold.ops.table import exact


class Leaf:
    """Stands in a structure for a value that is kept apart; one object, compared by identity."""

    def __repr__(self) -> str:
        return "*"


LEAF = Leaf()


class ByBits:
    """A number of a type other than Python's own float in a form that compares by its bits: -0.0 equals 0.0,
    and NaN not even itself."""

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


def flatten(tree: Any, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> Any:
    """Append the leaves in order, and return a hashable structure that holds everything else."""
    if is_leaf(tree):
        leaves.append(tree)
        return LEAF
    kind = type(tree)  # of a proxy its own: what it stands for may be gone
    if issubclass(kind, dict):
        parts = tuple([flatten(branch, is_leaf, leaves) for branch in tree.values()])
        made_by = Defaulting(kind, tree.default_factory) if issubclass(kind, defaultdict) else kind
        return made_by, tuple([key if type(key) is str else _key(key) for key in tree]), parts
    if issubclass(kind, (tuple, list)):
        return kind, None, tuple([flatten(branch, is_leaf, leaves) for branch in tree])
    # 1, 1.0 and True are equal, and so are 0.0 and -0.0: the type tells them apart.
    if kind is float:
        value = exact(tree)
        return type(value), value
    return kind, ByBits(tree) if issubclass(kind, (float, complex, np.generic)) else tree


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
    if len(rest) == 1:
        return reprlib.repr(rest[0])
    return f"a {getattr(kind, '__name__', 'dict')} of {len(rest[1])}"


def unflatten(structure: Any, leaves: Any) -> Any:
    """The inverse of `flatten`; `leaves` is an iterator."""
    if structure is LEAF:
        return next(leaves)
    if len(structure) == 2:
        value = structure[1]
        return value.number if type(value) is ByBits else value
    kind, keys, parts = structure
    built = [unflatten(part, leaves) for part in parts]
    if keys is not None:
        mapping = kind()
        names = [key if type(key) is str else unflatten(key, iter(())) for key in keys]
        mapping.update(zip(names, built, strict=True))
        return mapping
    return kind(*built) if hasattr(kind, "_fields") else kind(built)
