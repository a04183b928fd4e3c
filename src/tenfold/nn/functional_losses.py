"""Losses of `tenfold.nn.functional`: reductions by name around the rows, and the losses PyTorch composes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

from tenfold.errors import ArgumentError, ShapeError, located
from tenfold.functional import aten
from tenfold.tensor import Tensor

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _number(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """ATen's number for a reduction. The two bools are PyTorch's older way to say which."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f"size_average and reduce are deprecated: use reduction={reduction!r}", stacklevel=4)
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"unknown reduction {reduction!r}", help=f"one of {', '.join(REDUCTIONS)}")
    return REDUCTIONS[reduction]


def _reduced(loss: Tensor, number: int) -> Tensor:
    return (loss, loss.mean, loss.sum)[number]() if number else loss


def _fitting(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both of one shape. That they had two is more often a mistake than meant."""
    if input.shape != target.shape:
        warnings.warn(
            f"a target of shape {tuple(target.shape)} for an input of shape {tuple(input.shape)}: they are "
            "broadcast, which is likely a mistake",
            stacklevel=4,
        )
        input, target = aten("broadcast_tensors")((input, target))
    return input, target


def _weighted(losses: Tensor, weight: Tensor, shape: Sequence[int], number: int) -> Tensor:
    if weight.shape != shape:
        raise ShapeError(f"the weight of shape {tuple(weight.shape)} is not the input's, {tuple(shape)}")
    weighted = losses * weight
    return weighted.sum() / weight.sum() if number == 1 else _reduced(weighted, number)


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
    """(input - target)²"""
    number, shape = _number(reduction, size_average, reduce), input.shape
    input, target = _fitting(input, target)
    if weight is None:
        return aten("mse_loss")(input, target, number)
    return _weighted((input - target) ** 2, weight, shape, number)


@located
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|"""
    number, shape = _number(reduction, size_average, reduce), input.shape
    input, target = _fitting(input, target)
    if weight is None:
        return aten("l1_loss")(input, target, number)
    return _weighted((input - target).abs(), weight, shape, number)


@located
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / (2 beta) where d = |input - target| is below beta, else d - beta / 2"""
    number = _number(reduction, size_average, reduce)
    return aten("smooth_l1_loss")(*_fitting(input, target), number, beta)


@located
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d² / 2 where d = |input - target| is below delta, else delta · (d - delta / 2)"""
    number, shape = _number(reduction), input.shape
    input, target = _fitting(input, target)
    if weight is None:
        return aten("huber_loss")(input, target, number, delta)
    return _weighted(aten("huber_loss")(input, target, 0, delta), weight, shape, number)


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
    """-input at each target's class"""
    number = _number(reduction, size_average, reduce)
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
    """-Σ target · log_softmax(input) over classes; targets are classes, or a probability for each class"""
    number = _number(reduction, size_average, reduce)
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
    """-target · log(input) - (1 - target) · log(1 - input)"""
    number = _number(reduction, size_average, reduce)
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
    """The binary cross entropy of sigmoid(input), which does not overflow"""
    number = _number(reduction, size_average, reduce)
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
    """target · (log(target) - input); "batchmean" divides the sum by the batch alone"""
    batchmean = reduction == "batchmean"
    if batchmean and size_average is None and reduce is None:
        reduction = "sum"
    elif reduction == "mean" and size_average is None and reduce is None:
        warnings.warn('kl_div: "mean" divides by all elements; the divergence is "batchmean"', stacklevel=3)
    number = _number("mean" if reduction == "batchmean" else reduction, size_average, reduce)
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
    """exp(input) - target · input, or input - target · log(input + eps) where input is no logarithm"""
    number = _number(reduction, size_average, reduce)
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
    """(log(var) + (input - target)² / var) / 2, var at least eps"""
    number = _number(reduction)
    if not isinstance(var, Tensor):
        if var < 0:
            raise ArgumentError(f"var={var} is negative")
        var = aten("full_like")(input, float(var))
    shape, of = tuple(input.shape), tuple(var.shape)
    if of != shape:
        differing = [(a, b) for a, b in zip(shape, of, strict=False) if a != b]
        if of == shape[:-1]:
            var = var.unsqueeze(-1)
        elif len(of) != len(shape) or [b for _, b in differing] != [1]:
            raise ShapeError(f"var of shape {of} fits neither {shape} nor one variance a row of it")
    message = "gaussian_nll_loss: an element of var is negative"
    var = aten("_functional_assert_async")((var >= 0).all(), message, var)
    # Its gradient is that of var itself, also where it is cut.
    var = var + (var.clamp(min=eps) - var).detach()
    loss = (var.log() + (input - target) ** 2 / var) * 0.5
    return _reduced(loss + 0.5 * math.log(math.tau) if full else loss, number)


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
    """-log of the likelihood of each target sequence under all its alignments in time"""
    lengths = (input_lengths, target_lengths)
    if any(isinstance(each, Tensor) for each in lengths):
        lengths = tuple([e if isinstance(e, Tensor) else targets.new_tensor(list(e)) for e in lengths])
    return aten("ctc_loss")(log_probs, targets, *lengths, blank, _number(reduction), zero_infinity)


# Margins


@located
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1"""
    return aten("hinge_embedding_loss")(input, target, margin, _number(reduction, size_average, reduce))


@located
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target · (input1 - input2) + margin)"""
    number = _number(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            f"the inputs and the target have {input1.ndim}, {input2.ndim} and {target.ndim} dimensions: "
            "they must be as many"
        )
    return aten("margin_ranking_loss")(input1, input2, target, margin, number)


@located
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1"""
    number = _number(reduction, size_average, reduce)
    return aten("cosine_embedding_loss")(input1, input2, target, margin, number)


@located
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target · input))"""
    return aten("soft_margin_loss")(input, target, _number(reduction, size_average, reduce))


@located
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ max(0, margin - input[target] + input[i])^p / classes, over all other classes i"""
    number = _number(reduction, size_average, reduce)
    return aten("multi_margin_loss")(input, target, p, margin, weight, number)


@located
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ max(0, 1 - input[j] + input[i]) / classes, over target classes j and other classes i"""
    return aten("multilabel_margin_loss")(input, target, _number(reduction, size_average, reduce))


@located
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of sigmoid(input), meant over the classes of each sample"""
    number = _number(reduction, size_average, reduce)
    log_sigmoid = aten("log_sigmoid")
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    loss = loss if weight is None else loss * weight
    return _reduced(loss.sum(-1) / input.shape[-1], number)


@located
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + ‖anchor - positive‖ - ‖anchor - negative‖)"""
    number = _number(reduction, size_average, reduce)
    if margin <= 0:
        raise ArgumentError(f"margin={margin} must be greater than 0")
    return aten("triplet_margin_loss")(anchor, positive, negative, margin, p, eps, swap, number)


@located
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + distance(anchor, positive) - distance(anchor, negative))"""
    number = _number(reduction)
    if margin <= 0:
        raise ArgumentError(f"margin={margin} must be greater than 0")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError("anchor, positive and negative must have as many dimensions as each other")
    distance = distance_function or aten("pairwise_distance")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = aten("minimum")(far, distance(positive, negative))
    return _reduced((margin + near - far).clamp_min(0), number)
