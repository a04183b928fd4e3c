"""The Tensor itself: how it is made, compared by identity, and becomes a leaf."""

from __future__ import annotations

import pytest

import tenfold as tn


def test_a_tensor_is_a_key_by_its_identity():
    x, same = tn.tensor([1.0]), tn.tensor([1.0])
    assert {x: 1, same: 2}[x] == 1 and hash(x) == hash(x)
    assert len({x, same, x}) == 2


def test_pytorchs_own_constructor_takes_sizes_or_data():
    assert tn.Tensor(2, 3).shape == (2, 3) and tn.Tensor(4).dtype is tn.float32
    assert tn.Tensor([1, 2]).tolist() == [1.0, 2.0] and tn.Tensor().numel() == 0
    with pytest.raises(tn.ArgumentError):
        tn.Tensor("a")


def test_a_gradient_can_be_set_by_pytorchs_own_name_for_it():
    x = tn.ones(2, requires_grad=True)
    x._grad = tn.zeros(2)
    assert x.grad.tolist() == x._grad.tolist() == [0, 0]


def test_a_lazy_tensor_becomes_a_leaf_by_one_node():
    computed = tn.ones(3) * 2
    depth = computed.current().node.depth
    assert computed.requires_grad_().current().node.depth == depth + 1
