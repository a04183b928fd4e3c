"""Losses of nn.functional against PyTorch: values and gradients in every mode, and what they refuse."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, TenfoldError
from tenfold.nn import functional as F
from tests.nn.comparing import Call, Drawn, compare

REDUCTIONS = ("none", "mean", "sum")


def by_every_reduction(call) -> Call:
    return lambda F, t: tuple(call(F, t, reduction) for reduction in REDUCTIONS)


def pair() -> Drawn:
    return Drawn().normal(x=(3, 4), y=(3, 4)).uniform(0.5, 2, w=(3, 4), v=(3, 4))


def chances() -> Drawn:
    return Drawn().uniform(0.05, 0.95, x=(3, 4), y=(3, 4)).uniform(0.5, 2, w=(3, 4), p=(4,)).normal(z=(3, 4))


def classes(*shape: int) -> Drawn:
    drawn = Drawn().normal(x=shape).integers(0, shape[1], t=(shape[0], *shape[2:]))
    return drawn.uniform(0.5, 2, w=(shape[1],)).uniform(0.1, 1, q=shape)


def signs() -> Drawn:
    drawn = Drawn().normal(x=(5, 4), y=(5, 4), z=(5, 4))
    drawn.arrays |= {"s": np.array([1, -1, 1, -1, 1]), "m": np.where(drawn.arrays["z"] > 0, 1, -1)}
    return drawn


@pytest.mark.parametrize(
    ("call", "drawn"),
    [
        (lambda F, t, r: F.mse_loss(t.x, t.y, reduction=r), pair),
        (lambda F, t, r: F.mse_loss(t.x, t.y, reduction=r, weight=t.w), pair),
        (lambda F, t, r: F.l1_loss(t.x, t.y, reduction=r), pair),
        (lambda F, t, r: F.l1_loss(t.x, t.y, reduction=r, weight=t.w), pair),
        (lambda F, t, r: F.smooth_l1_loss(t.x, t.y, reduction=r, beta=0.7), pair),
        (lambda F, t, r: F.smooth_l1_loss(t.x, t.y, reduction=r, beta=0), pair),
        (lambda F, t, r: F.huber_loss(t.x, t.y, reduction=r, delta=0.7), pair),
        (lambda F, t, r: F.huber_loss(t.x, t.y, reduction=r, weight=t.w), pair),
        (lambda F, t, r: F.kl_div(t.x, t.w, reduction=r), pair),
        (lambda F, t, r: F.kl_div(t.x, t.y, reduction=r, log_target=True), pair),
        (lambda F, t, r: F.poisson_nll_loss(t.x, t.w, reduction=r, full=True), pair),
        (lambda F, t, r: F.poisson_nll_loss(t.v, t.w, log_input=False, reduction=r), pair),
        (lambda F, t, r: F.gaussian_nll_loss(t.x, t.y, t.w, reduction=r, full=True), pair),
        (lambda F, t, r: F.gaussian_nll_loss(t.x, t.y, 0.5, reduction=r), pair),
        (lambda F, t, r: F.gaussian_nll_loss(t.x, t.y, t.w[:, 0], eps=1.0, reduction=r), pair),
        (lambda F, t, r: F.binary_cross_entropy(t.x, t.y, t.w.detach(), reduction=r), chances),
        (lambda F, t, r: F.binary_cross_entropy(t.x, t.y, reduction=r), chances),
        (lambda F, t, r: F.binary_cross_entropy_with_logits(t.z, t.y, reduction=r), chances),
        (
            lambda F, t, r: F.binary_cross_entropy_with_logits(
                t.z, t.y, t.w.detach(), None, None, r, t.p.detach()
            ),
            chances,
        ),
        (lambda F, t, r: F.hinge_embedding_loss(t.x, t.m, 0.5, reduction=r), signs),
        (lambda F, t, r: F.margin_ranking_loss(t.x, t.y, t.m, 0.5, reduction=r), signs),
        (lambda F, t, r: F.cosine_embedding_loss(t.x, t.y, t.s, 0.1, reduction=r), signs),
        (lambda F, t, r: F.soft_margin_loss(t.x, t.m, reduction=r), signs),
        (lambda F, t, r: F.triplet_margin_loss(t.x, t.y, t.z, 2.0, reduction=r), signs),
        (lambda F, t, r: F.triplet_margin_loss(t.x, t.y, t.z, p=1, swap=True, reduction=r), signs),
        (lambda F, t, r: F.triplet_margin_with_distance_loss(t.x, t.y, t.z, swap=True, reduction=r), signs),
    ],
)
@pytest.mark.filterwarnings("ignore:.*batchmean")
def test_losses_of_elements_and_vectors(call, drawn) -> None:
    compare(by_every_reduction(call), drawn())


@pytest.mark.parametrize(
    ("call", "drawn"),
    [
        (lambda F, t, r: F.nll_loss(t.x, t.t, t.w.detach(), reduction=r), lambda: classes(6, 4)),
        (lambda F, t, r: F.nll_loss(t.x, t.t, ignore_index=1, reduction=r), lambda: classes(6, 4)),
        (lambda F, t, r: F.nll_loss(t.x, t.t, t.w.detach(), reduction=r), lambda: classes(2, 4, 3, 2)),
        (lambda F, t, r: F.cross_entropy(t.x, t.t, reduction=r), lambda: classes(6, 4)),
        (
            lambda F, t, r: F.cross_entropy(t.x, t.t, t.w.detach(), None, 1, None, r, 0.2),
            lambda: classes(6, 4),
        ),
        (lambda F, t, r: F.cross_entropy(t.x, t.t, t.w.detach(), reduction=r), lambda: classes(2, 4, 3)),
        (lambda F, t, r: F.cross_entropy(t.x, t.q, reduction=r), lambda: classes(6, 4)),
        (
            lambda F, t, r: F.cross_entropy(t.x, t.q, t.w.detach(), reduction=r, label_smoothing=0.2),
            lambda: classes(2, 4, 3),
        ),
        (lambda F, t, r: F.cross_entropy(t.x[0], t.t[0], reduction=r), lambda: classes(2, 4)),
        (lambda F, t, r: F.multi_margin_loss(t.x, t.t, reduction=r), lambda: classes(6, 4)),
        (
            lambda F, t, r: F.multi_margin_loss(t.x, t.t, 2, 0.5, t.w.detach(), reduction=r),
            lambda: classes(6, 4),
        ),
        (lambda F, t, r: F.multilabel_soft_margin_loss(t.x, t.q, t.w, reduction=r), lambda: classes(6, 4)),
    ],
)
def test_losses_of_classes(call, drawn) -> None:
    compare(by_every_reduction(call), drawn())


def test_labels_before_the_first_negative_one_count() -> None:
    drawn = Drawn().normal(x=(3, 4))
    drawn.arrays["t"] = np.array([[1, 2, -1, 0], [-1, 0, 1, 2], [3, 2, 1, 0]])
    compare(by_every_reduction(lambda F, t, r: F.multilabel_margin_loss(t.x, t.t, reduction=r)), drawn)


def alignments() -> Drawn:
    drawn = Drawn().normal(x=(8, 3, 5))
    # The second repeats a label, which needs a blank between.
    drawn.arrays["t"] = np.array([[1, 2, 3], [4, 4, 1], [2, 1, 1]])
    return drawn


@pytest.mark.parametrize(
    "call",
    [
        lambda F, t, r: F.ctc_loss(t.x.log_softmax(2), t.t, (8, 8, 8), (3, 3, 3), reduction=r),
        lambda F, t, r: F.ctc_loss(t.x.log_softmax(2), t.t, (8, 6, 4), (3, 2, 0), reduction=r),
        lambda F, t, r: F.ctc_loss(
            t.x.log_softmax(2), t.t.reshape(-1)[:6], (8, 6, 4), (3, 2, 1), reduction=r
        ),
        lambda F, t, r: F.ctc_loss(
            t.x.log_softmax(2), t.t, (8, 2, 8), (3, 3, 3), reduction=r, zero_infinity=True
        ),
        lambda F, t, r: F.ctc_loss(t.x[:, 0].log_softmax(1), t.t[0], (8,), (3,), reduction=r),
    ],
)
def test_ctc_sums_over_alignments(call) -> None:
    compare(by_every_reduction(call), alignments(), rtol=1e-6)


def test_ctc_takes_lengths_as_tensors() -> None:
    logs = tn.tensor(alignments().arrays["x"]).log_softmax(2)
    targets = tn.tensor(alignments().arrays["t"])
    by_list = F.ctc_loss(logs, targets, (8, 6, 4), (3, 2, 0))
    by_tensor = F.ctc_loss(logs, targets, tn.tensor([8, 6, 4]), (3, 2, 0))
    assert by_list.item() == pytest.approx(by_tensor.item())


@pytest.mark.parametrize("size_average", [None, True, False])
@pytest.mark.parametrize("reduce", [None, True, False])
def test_older_names_of_reductions(size_average: bool | None, reduce: bool | None) -> None:
    x, y = np.arange(3.0), np.ones(3)
    kwargs = {"size_average": size_average, "reduce": reduce}
    with (
        pytest.warns(UserWarning)
        if kwargs != {"size_average": None, "reduce": None}
        else contextlib.nullcontext()
    ):
        ours = F.mse_loss(tn.tensor(x), tn.tensor(y), **kwargs)
        theirs = torch.nn.functional.mse_loss(torch.tensor(x), torch.tensor(y), **kwargs)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy())


def test_batchmean_divides_by_the_batch() -> None:
    compare(lambda F, t: F.kl_div(t.x, t.w, reduction="batchmean"), pair())


def test_a_target_that_broadcasts_warns() -> None:
    with pytest.warns(UserWarning, match="broadcast"):
        F.mse_loss(tn.ones(3, 4), tn.ones(4))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.mse_loss(tn.ones(3), tn.ones(3), reduction="average"), ArgumentError),
        (lambda: F.mse_loss(tn.ones(3), tn.ones(3), weight=tn.ones(2)), ShapeError),
        (lambda: F.mse_loss(tn.ones(3).int(), tn.ones(3).int()), DTypeError),
        (lambda: F.nll_loss(tn.ones(3, 4), tn.tensor([0, 1, 4])).item(), IndexOutOfRange),
        (lambda: F.nll_loss(tn.ones(3, 4), tn.tensor([0, 1])), ShapeError),
        (lambda: F.nll_loss(tn.ones(3, 4), tn.tensor([0.0, 1, 2])), DTypeError),
        (lambda: F.cross_entropy(tn.ones(3, 4), tn.tensor([0, 1, -1])).item(), IndexOutOfRange),
        (lambda: F.cross_entropy(tn.ones(3, 4), tn.ones(3, 4), ignore_index=1), ArgumentError),
        (lambda: F.cross_entropy(tn.ones(3, 4), tn.ones(3, 4).int()), DTypeError),
        (lambda: F.binary_cross_entropy(tn.ones(3) * 2, tn.ones(3)).item(), ArgumentError),
        (lambda: F.binary_cross_entropy(tn.ones(3), tn.ones(3) * 2).item(), ArgumentError),
        (lambda: F.binary_cross_entropy(tn.ones(3), tn.ones(2)), ShapeError),
        (lambda: F.gaussian_nll_loss(tn.ones(3), tn.ones(3), -tn.ones(3)).item(), ArgumentError),
        (lambda: F.gaussian_nll_loss(tn.ones(3), tn.ones(3), -1.0), ArgumentError),
        (lambda: F.gaussian_nll_loss(tn.ones(2, 3), tn.ones(2, 3), tn.ones(3)), ShapeError),
        (lambda: F.triplet_margin_loss(tn.ones(3), tn.ones(3), tn.ones(3), margin=0), ArgumentError),
        (lambda: F.margin_ranking_loss(tn.ones(3), tn.ones(3), tn.ones(1, 3)), ShapeError),
        (lambda: F.ctc_loss(tn.ones(4, 1, 3), tn.ones(1, 2).long(), (5,), (2,)), ArgumentError),
        (lambda: F.ctc_loss(tn.ones(4, 1, 3), tn.ones(1, 2).long(), (4,), (3,)), ArgumentError),
        (lambda: F.ctc_loss(tn.ones(4, 1, 3), tn.tensor([[1, 3]]), (4,), (2,)).item(), IndexOutOfRange),
        (
            lambda: F.ctc_loss(tn.ones(4, 1, 3), tn.ones(1, 2).long(), tn.tensor([5]), tn.tensor([2])).item(),
            ArgumentError,
        ),
    ],
)
def test_wrong_arguments_are_refused(call, error: type[TenfoldError]) -> None:
    with pytest.raises(error):
        call()
