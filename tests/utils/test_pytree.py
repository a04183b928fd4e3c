"""Trees come apart and together as in PyTorch."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch.utils._pytree as theirs

import tenfold as tn
from tenfold.utils import _pytree as ours

Point = namedtuple("Point", "x y")
TREES: list[Any] = [
    3,
    [1, (2, {"b": 3, "a": [4, None]})],
    OrderedDict(z=1, a=(2,)),
    Point([1], 2),
    deque([1, 2], maxlen=3),
    defaultdict(list, {"k": [1]}),
    [],
    {"a": {}},
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_leaves_and_rebuilding_are_pytorchs(tree):
    leaves, spec = ours.tree_flatten(tree)
    expected, their_spec = theirs.tree_flatten(tree)
    assert leaves == expected and spec.num_leaves == their_spec.num_leaves
    assert spec.num_nodes == their_spec.num_nodes
    rebuilt = ours.tree_unflatten([str(each) for each in leaves], spec)
    assert rebuilt == theirs.tree_unflatten([str(each) for each in expected], their_spec)
    assert type(ours.tree_unflatten(leaves, spec)) is type(tree)
    assert ours.tree_structure(tree) == spec


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_paths_are_pytorchs(tree):
    mine = [(ours.keystr(path), leaf) for path, leaf in ours.tree_flatten_with_path(tree)[0]]
    expected = [(theirs.keystr(path), leaf) for path, leaf in theirs.tree_flatten_with_path(tree)[0]]
    assert mine == expected


def test_a_function_maps_over_several_trees_of_one_structure():
    assert ours.tree_map(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]}) == {"x": [11, 22]}
    with pytest.raises(ValueError):
        ours.tree_map(lambda a, b: a + b, [1, 2], [1, 2, 3])


def test_only_leaves_of_a_type_are_mapped():
    mapped = ours.tree_map_only(tn.Tensor, lambda t: t.shape, (tn.ones(2), "word"))
    assert mapped == ((2,), "word")
    assert ours.tree_any(lambda x: x == 3, [1, [3]]) and not ours.tree_all(lambda x: x == 3, [1, [3]])


def test_a_registered_class_is_a_node():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    ours.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda values, _: Pair(*values))
    doubled = ours.tree_map(lambda x: 2 * x, [Pair(1, 2)])[0]
    assert (doubled.a, doubled.b) == (2, 4)
    with pytest.raises(ValueError, match="already registered"):
        ours.register_pytree_node(Pair, lambda p: ([], None), lambda values, _: None)


def test_a_registered_dataclass_is_a_node():
    @dataclass
    class Batch:
        x: Any
        y: Any

    ours.register_dataclass(Batch)
    assert ours.tree_map(lambda x: x + 1, Batch(1, [2])) == Batch(2, [3])


def test_the_wrong_number_of_leaves_is_an_error():
    with pytest.raises(tn.ArgumentError, match="1 leaves do not fit a structure with 2"):
        ours.tree_unflatten([1], ours.tree_structure([1, 2]))
