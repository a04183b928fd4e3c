"""Sparse tensors in files: PyTorch reads ours, and we read PyTorch's."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

import tenfold as tn

DENSE = [[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]
LAYOUTS = ["to_sparse", "to_sparse_csr", "to_sparse_csc"]


class Holder:
    """An object that only pickle can write."""


def through(save, load, value):
    file = io.BytesIO()
    save(value, file)
    file.seek(0)
    return load(file)


@pytest.mark.parametrize("convert", LAYOUTS)
def test_sparse_tensors_go_to_pytorch_and_back(convert):
    for save_by, load_by in ((tn, torch), (torch, tn), (tn, tn)):
        matrix = getattr(save_by.tensor(DENSE), convert)()
        loaded = through(save_by.save, load_by.load, {"matrix": matrix, "again": matrix})
        assert loaded["matrix"] is loaded["again"]
        assert str(loaded["matrix"].layout)[-3:] == str(matrix.layout)[-3:]
        np.testing.assert_array_equal(loaded["matrix"].to_dense().numpy(), DENSE)


def test_whether_elements_are_coalesced_is_saved():
    twice = tn.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,))
    loaded = through(tn.save, torch.load, {"twice": twice, "once": twice.coalesce()})
    assert not loaded["twice"].is_coalesced() and loaded["once"].is_coalesced()
    assert through(torch.save, tn.load, loaded["once"]).is_coalesced()


def test_an_object_may_hold_a_sparse_tensor():
    holder = Holder()
    holder.matrix = tn.tensor(DENSE).to_sparse().requires_grad_()
    with tn.serialize.trusting_files():
        loaded = through(tn.save, lambda file: tn.load(file, weights_only=False), holder)
    np.testing.assert_array_equal(loaded.matrix.to_dense().numpy(), DENSE)


def test_a_file_whose_indices_lie_outside_is_refused():
    outside = torch.sparse_coo_tensor(torch.tensor([[0, 9]]), torch.tensor([1.0, 2.0]), (10,))
    outside._indices()[0, 1] = 99
    with pytest.raises(tn.FormatError, match="sparse tensor of the file is damaged"):
        through(torch.save, tn.load, outside)
