"""Nested containers taken apart and put together again: lists, tuples, named tuples, dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.ops.table import exact


class Leaf:
    """Stands in a structure for a value that is kept apart; one object, compared by identity."""

    def __repr__(self) -> str:
        return "*"


LEAF = Leaf()


def flatten(tree: Any, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> Any:
    """Append the leaves in order, and return a hashable structure that holds everything else."""
    if is_leaf(tree):
        leaves.append(tree)
        return LEAF
    kind = type(tree)
    if isinstance(tree, dict):
        return kind, tuple(tree), tuple([flatten(each, is_leaf, leaves) for each in tree.values()])
    if isinstance(tree, (tuple, list)):
        return kind, None, tuple([flatten(each, is_leaf, leaves) for each in tree])
    # 1, 1.0 and True are equal, and so are 0.0 and -0.0: the type tells them apart.
    value = exact(tree) if kind is float else tree
    return type(value), value


def unflatten(structure: Any, leaves: Any) -> Any:
    """The inverse of `flatten`; `leaves` is an iterator."""
    if structure is LEAF:
        return next(leaves)
    if len(structure) == 2:
        return structure[1]
    kind, keys, parts = structure
    built = [unflatten(each, leaves) for each in parts]
    if keys is not None:
        made = kind() if kind is not dict else {}
        made.update(zip(keys, built, strict=True))
        return made
    return kind(*built) if hasattr(kind, "_fields") else kind(built)
