"""Losses of `tenfold.nn.functional`: reductions by name around the rows, and the losses PyTorch composes.

Those that ask for a margin are in `functional_margins.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.base.warning import warn
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_number(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """ATen's number for a reduction. The two bools are PyTorch's older way to say which."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warn(f"size_average and reduce are deprecated: use reduction={reduction!r}")
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"unknown reduction {reduction!r}", help=f"one of {', '.join(REDUCTIONS)}")
    return REDUCTIONS[reduction]


def reduced(loss: Tensor, number: int) -> Tensor:
    """A loss by ATen's number for a reduction: its mean, its sum, or itself."""
    return loss.mean() if number == 1 else loss.sum() if number == 2 else loss


def _fitting(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both of one shape. That they had two is more often a mistake than meant."""
    if input.shape != target.shape:
        warn(
            f"a target of shape {tuple(target.shape)} for an input of shape {tuple(input.shape)}: they are "
            "broadcast, which is likely a mistake"
        )
        input, target = aten("broadcast_tensors")((input, target))
    return input, target


def _weighted(losses: Tensor, weight: Tensor, shape: Sequence[int]) -> Tensor:
    if weight.shape != shape:
        raise ShapeError(f"the weight of shape {tuple(weight.shape)} is not the input's, {tuple(shape)}")
    return losses * weight


def _averaged(weighted: Tensor, weight: Tensor, number: int) -> Tensor:
    """Weighted losses reduced; their mean is over weights."""
    return weighted.sum() / weight.sum() if number == 1 else reduced(weighted, number)


# Distances


@located
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)², averaged

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.mse_loss(tn.tensor([1.0, 2.0]), tn.tensor([3.0, 2.0]))  # 2.0
    """
    number, shape = reduction_number(reduction, size_average, reduce), input.shape
    input, target = _fitting(input, target)
    if weight is None:
        return aten("mse_loss")(input, target, number)
    return _averaged(_weighted((input - target) ** 2, weight, shape), weight, number)


@located
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, averaged

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.l1_loss(tn.tensor([1.0, 2.0]), tn.tensor([3.0, 2.0]))  # 1.0
    """
    number, shape = reduction_number(reduction, size_average, reduce), input.shape
    input, target = _fitting(input, target)
    if weight is None:
        return aten("l1_loss")(input, target, number)
    return _averaged(_weighted((input - target).abs(), weight, shape), weight, number)


@located
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / (2 beta) where d = |input - target| is below beta, else d - beta / 2

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.smooth_l1_loss(tn.tensor([1.0, 3.0]), tn.tensor([1.5, 0.0]))  # 1.3125
    """
    number = reduction_number(reduction, size_average, reduce)
    return aten("smooth_l1_loss")(*_fitting(input, target), number, beta)


@located
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d² / 2 where d = |input - target| is below delta, else delta · (d - delta / 2)

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.huber_loss(tn.tensor([1.0, 3.0]), tn.tensor([1.5, 0.0]))  # 1.3125
    """
    number, shape = reduction_number(reduction), input.shape
    input, target = _fitting(input, target)
    if weight is None:
        return aten("huber_loss")(input, target, number, delta)
    return reduced(_weighted(aten("huber_loss")(input, target, 0, delta), weight, shape), number)


# Likelihoods


@located
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-weight[target] · input[target], averaged

    Input (N, C, *) of log-probabilities, target (N, *) of classes.

        F.nll_loss(tn.full((2, 4), 0.25).log(), tn.tensor([0, 3]))  # 1.3863
    """
    number = reduction_number(reduction, size_average, reduce)
    return aten("nll_loss_nd")(input, target, weight, number, ignore_index)


@located
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-Σ target · log_softmax(input) over classes; targets are classes, or a probability for each class

    Input (N, C, *) of scores; target (N, *) of classes, or (N, C, *) of probabilities.

        F.cross_entropy(tn.zeros(2, 4), tn.tensor([0, 3]))  # 1.3863
    """
    number = reduction_number(reduction, size_average, reduce)
    return aten("cross_entropy_loss")(input, target, weight, number, ignore_index, label_smoothing)


@located
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-target · log(input) - (1 - target) · log(1 - input)

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.binary_cross_entropy(tn.tensor([0.5, 0.5]), tn.tensor([0.0, 1.0]))  # 0.6931
    """
    number = reduction_number(reduction, size_average, reduce)
    _same_shape(input, target)
    return aten("binary_cross_entropy")(input, target, weight, number)


def _same_shape(input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ShapeError(
            f"a target of shape {tuple(target.shape)} for an input of shape {tuple(input.shape)}",
            help="they must be of one shape: unsqueeze or expand one",
        )


@located
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of sigmoid(input), which does not overflow

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.binary_cross_entropy_with_logits(tn.tensor([0.0, 0.0]), tn.tensor([0.0, 1.0]))  # 0.6931
    """
    number = reduction_number(reduction, size_average, reduce)
    _same_shape(input, target)
    return aten("binary_cross_entropy_with_logits")(input, target, weight, pos_weight, number)


@located
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target · (log(target) - input); "batchmean" divides the sum by the batch alone

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.kl_div(tn.full((1, 2), 0.5).log(), tn.full((1, 2), 0.5), reduction="batchmean")  # 0.0
    """
    batchmean = reduction == "batchmean"
    if batchmean and size_average is None and reduce is None:
        reduction = "sum"
    elif reduction == "mean" and size_average is None and reduce is None:
        warn('kl_div: "mean" divides by all elements; the divergence is "batchmean"')
    number = reduction_number("mean" if reduction == "batchmean" else reduction, size_average, reduce)
    loss = aten("kl_div")(input, target, number, log_target=log_target)
    return loss / input.shape[0] if batchmean and input.ndim else loss


@located
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target · input, or input - target · log(input + eps) with log_input=False

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.poisson_nll_loss(tn.tensor([0.0, 0.0]), tn.tensor([1.0, 2.0]))  # 1.0
    """
    number = reduction_number(reduction, size_average, reduce)
    return aten("poisson_nll_loss")(input, target, log_input, full, eps, number)


@located
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(var) + (input - target)² / var) / 2, var at least eps

    Input, target and var (*), or one variance for each row.

        F.gaussian_nll_loss(tn.zeros(2), tn.ones(2), tn.ones(2))  # 0.5
    """
    number = reduction_number(reduction)
    if not isinstance(var, Tensor) and var < 0:
        raise ArgumentError(f"var={var} is negative")
    spread: Tensor = var if isinstance(var, Tensor) else aten("full_like")(input, float(var))
    shape, of = tuple(input.shape), tuple(spread.shape)
    if of != shape:
        differing = [(a, b) for a, b in zip(shape, of, strict=False) if a != b]
        if of == shape[:-1]:
            spread = spread.unsqueeze(-1)
        elif len(of) != len(shape) or [b for _, b in differing] != [1]:
            raise ShapeError(f"var of shape {of} fits neither {shape} nor one variance a row of it")
    message = "gaussian_nll_loss: an element of var is negative"
    spread = aten("_functional_assert_async")((spread >= 0).all(), message, spread)
    # Its gradient is that of var itself, also where it is cut.
    spread = spread + (spread.clamp(min=eps) - spread).detach()
    loss = (spread.log() + (input - target) ** 2 / spread) * 0.5
    return reduced(loss + 0.5 * math.log(math.tau) if full else loss, number)


@located
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the likelihood of each target sequence under all its alignments in time

    log_probs (T, N, C), targets (N, S) or all of them joined, two vectors of lengths (N).

        scores = tn.zeros(5, 1, 3).log_softmax(-1)
        F.ctc_loss(scores, tn.tensor([[1, 2]]), tn.tensor([5]), tn.tensor([2])).shape  # []
    """
    lengths = [input_lengths, target_lengths]
    if any(isinstance(length, Tensor) for length in lengths):
        lengths = [
            length if isinstance(length, Tensor) else targets.new_tensor(list(length)) for length in lengths
        ]
    return aten("ctc_loss")(log_probs, targets, *lengths, blank, reduction_number(reduction), zero_infinity)
