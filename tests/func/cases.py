"""Arrays and a comparison that the tests of transformations share."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tn

DRAWS = np.random.default_rng(0)
MATRIX = DRAWS.normal(size=(3, 4)).astype(np.float32)
BATCH = DRAWS.normal(size=(5, 4)).astype(np.float32)
VECTOR = BATCH[0].copy()


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [(key, leaf) for key, each in tree.items() for leaf in leaves(each)]
    if isinstance(tree, (list, tuple)):
        return [(i, leaf) for i, each in enumerate(tree) for leaf in leaves(each)]
    return [tree.detach()]


def same(ours: Any, theirs: Any) -> None:
    mine, expected = leaves(ours), leaves(theirs)
    assert len(mine) == len(expected)
    tn.eval([_tensor(each) for each in mine])
    for our, their in zip(mine, expected, strict=True):
        while isinstance(our, tuple):
            assert our[0] == their[0]
            our, their = our[1], their[1]
        np.testing.assert_allclose(our.numpy(), their.numpy(), rtol=3e-5, atol=1e-6)


def _tensor(leaf: Any) -> Any:
    return _tensor(leaf[1]) if isinstance(leaf, tuple) else leaf
