"""`torch._utils`: tensors as one vector and back, as PyTorch does it."""

from __future__ import annotations

import torch
from torch import _utils as theirs

import tenfold as tn
from tenfold.compat.private import utilities as ours


def tensors(xp):
    return [xp.arange(6.0).reshape(2, 3), xp.ones(2, 2).t() * 2, xp.tensor(5.0)]


def test_tensors_become_one_vector_and_views_of_it():
    flat, expected = ours._flatten_dense_tensors(tensors(tn)), theirs._flatten_dense_tensors(tensors(torch))
    assert flat.tolist() == expected.tolist()
    for view, other in zip(
        ours._unflatten_dense_tensors(flat, tensors(tn)),
        theirs._unflatten_dense_tensors(expected, tensors(torch)),
        strict=True,
    ):
        assert view.tolist() == other.tolist()


def test_groups_have_one_type_and_a_limited_size():
    def given(xp):
        return [xp.ones(2), xp.ones(3, dtype=xp.int64), xp.ones(1), xp.ones(5), xp.ones(1, dtype=xp.int64)]

    for limit in (1, 12, 16, 1000):
        groups = [[each.tolist() for each in group] for group in ours._take_tensors(given(tn), limit)]
        assert groups == [
            [each.tolist() for each in group] for group in theirs._take_tensors(given(torch), limit)
        ]


def test_tensors_return_to_the_order_of_others():
    grouped, order = [tn.ones(1), tn.zeros(2), tn.ones(3, dtype=tn.int64)], [tn.zeros(1, dtype=tn.int64)]
    order = [tn.ones(1), *order, tn.ones(2)]
    assert [each.tolist() for each in ours._reorder_tensors_as(grouped, order)] == [
        [1.0],
        [1, 1, 1],
        [0.0, 0.0],
    ]


def test_the_size_of_an_element_is_its_dtypes():
    for name in ("float32", "int8", "bool", "complex128"):
        assert ours._element_size(getattr(tn, name)) == theirs._element_size(getattr(torch, name))
