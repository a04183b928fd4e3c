"""Bags of embeddings against PyTorch: values and gradients in every mode."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError, IndexOutOfRange, ShapeError, TenfoldError
from tenfold.nn import functional as F
from tests.nn.comparing import Drawn, compare


def bags() -> Drawn:
    drawn = Drawn().normal(w=(6, 3), p=(8,))
    drawn.arrays["i"] = np.array([1, 2, 4, 5, 4, 3, 2, 1])
    # One bag is empty, and one holds padding (4) alone.
    drawn.arrays["o"] = np.array([0, 2, 2, 4, 5])
    drawn.arrays["ends"] = np.array([0, 2, 2, 5, 8])
    return drawn


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 4, -2])
def test_bags_are_pytorchs(mode: str, padding_idx: int | None) -> None:
    def call(F, t):
        return (
            F.embedding_bag(t.i, t.w, t.o, mode=mode, padding_idx=padding_idx),
            F.embedding_bag(t.i, t.w, t.ends, mode=mode, padding_idx=padding_idx, include_last_offset=True),
            F.embedding_bag(t.i.reshape(2, 4), t.w, mode=mode, padding_idx=padding_idx),
        )

    compare(call, bags())


@pytest.mark.parametrize("padding_idx", [None, 4])
def test_weights_of_samples_have_gradients(padding_idx: int | None) -> None:
    compare(
        lambda F, t: F.embedding_bag(
            t.i, t.w, t.o, mode="sum", per_sample_weights=t.p, padding_idx=padding_idx
        ),
        bags(),
    )


def test_frequent_rows_learn_less_on_request() -> None:
    # PyTorch's bags halve the gradient of a row that occurs once here; its embedding of single rows does not.
    arrays = bags().arrays
    ours, theirs = (library.tensor(arrays["w"], requires_grad=True) for library in (tn, torch))
    indices = arrays["i"].reshape(2, 4)
    F.embedding_bag(tn.tensor(indices), ours, mode="sum", scale_grad_by_freq=True).square().sum().backward()
    rows = torch.nn.functional.embedding(torch.tensor(indices), theirs, scale_grad_by_freq=True)
    rows.sum(1).square().sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 1e-7)


def test_long_rows_are_cut_in_place() -> None:
    arrays = bags().arrays
    ours, theirs = tn.tensor(arrays["w"]), torch.tensor(arrays["w"])
    found = F.embedding_bag(tn.tensor(arrays["i"]), ours, tn.tensor(arrays["o"]), max_norm=0.5)
    golden = torch.nn.functional.embedding_bag(
        torch.tensor(arrays["i"]), theirs, torch.tensor(arrays["o"]), max_norm=0.5
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-6)
    np.testing.assert_allclose(found.numpy(), golden.numpy(), 1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_nothing_take_a_table_without_rows(mode: str) -> None:
    found = []
    for library in (tn, torch):
        table = library.zeros(0, 3, requires_grad=True)
        indices, offsets = library.zeros(0, dtype=library.int64), library.tensor([0, 0])
        bags = library.nn.functional.embedding_bag(indices, table, offsets, mode=mode)
        bags.sum().backward()
        found.append((bags.tolist(), table.grad.tolist()))
    assert found[0] == found[1]


def test_rows_of_a_matrix_are_bags_whether_or_not_the_last_offset_is_included() -> None:
    drawn = bags()
    compare(lambda F, t: F.embedding_bag(t.i.reshape(2, 4), t.w, include_last_offset=True), drawn)


W, INDICES = tn.ones(6, 3), tn.tensor([1, 2, 3])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.embedding_bag(INDICES, W), ShapeError),
        (lambda: F.embedding_bag(INDICES.reshape(1, 3), W, tn.tensor([0])), ArgumentError),
        (lambda: F.embedding_bag(INDICES, W, tn.tensor([0]), mode="median"), ArgumentError),
        (
            lambda: F.embedding_bag(INDICES, W, tn.tensor([0]), mode="max", scale_grad_by_freq=True),
            ArgumentError,
        ),
        (lambda: F.embedding_bag(INDICES, W, tn.tensor([0]), per_sample_weights=tn.ones(3)), ArgumentError),
        (lambda: F.embedding_bag(INDICES, W, tn.tensor([0]), padding_idx=6), ArgumentError),
        (lambda: F.embedding_bag(INDICES, W, tn.tensor([1])).numpy(), ArgumentError),
        (lambda: F.embedding_bag(INDICES, W, tn.tensor([0, 4])).numpy(), ArgumentError),
        (lambda: F.embedding_bag(INDICES + 4, W, tn.tensor([0])).numpy(), IndexOutOfRange),
    ],
)
def test_wrong_arguments_are_refused(call, error: type[TenfoldError]) -> None:
    with pytest.raises(error):
        call()
