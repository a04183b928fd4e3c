"""Losses of `tenfold.nn.functional` that ask for a margin between inputs, or between classes."""

from __future__ import annotations

from collections.abc import Callable

from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.nn.functional_losses import reduced, reduction_number
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


@located
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.hinge_embedding_loss(tn.tensor([0.5, 0.5]), tn.tensor([1.0, -1.0]))  # 0.5
    """
    return aten("hinge_embedding_loss")(
        input, target, margin, reduction_number(reduction, size_average, reduce)
    )


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
    """max(0, -target · (input1 - input2) + margin)

    Inputs and target (N).

        F.margin_ranking_loss(tn.tensor([1.0]), tn.tensor([2.0]), tn.tensor([1.0]))  # 1.0
    """
    number = reduction_number(reduction, size_average, reduce)
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
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1

    Inputs (N, D) and target (N), or (D) and ().

        F.cosine_embedding_loss(tn.ones(2, 3), tn.ones(2, 3), tn.tensor([1.0, -1.0]))  # 0.5
    """
    number = reduction_number(reduction, size_average, reduce)
    return aten("cosine_embedding_loss")(input1, input2, target, margin, number)


@located
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target · input))

    Input and target (*); the result is a number, or (*) with reduction="none".

        F.soft_margin_loss(tn.tensor([0.0, 0.0]), tn.tensor([1.0, -1.0]))  # 0.6931
    """
    return aten("soft_margin_loss")(input, target, reduction_number(reduction, size_average, reduce))


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
    """Σ max(0, margin - input[target] + input[i])^p / classes, over all other classes i

    Input (N, C), target (N) of classes.

        F.multi_margin_loss(tn.tensor([[0.5, 1.0]]), tn.tensor([1]))  # 0.25
    """
    number = reduction_number(reduction, size_average, reduce)
    return aten("multi_margin_loss")(input, target, p, margin, weight, number)


@located
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ max(0, 1 - input[j] + input[i]) / classes, over target classes j and other classes i

    Input (N, C); target (N, C) of classes, as far as the first -1.

        F.multilabel_margin_loss(tn.tensor([[0.5, 1.0, 0.0]]), tn.tensor([[1, -1, -1]]))  # 0.1667
    """
    return aten("multilabel_margin_loss")(input, target, reduction_number(reduction, size_average, reduce))


@located
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of sigmoid(input), averaged over the classes of each sample

    Input and target (N, C).

        F.multilabel_soft_margin_loss(tn.zeros(1, 2), tn.tensor([[0.0, 1.0]]))  # 0.6931
    """
    number = reduction_number(reduction, size_average, reduce)
    log_sigmoid = aten("log_sigmoid")
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], number)


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
    """max(0, margin + ‖anchor - positive‖ - ‖anchor - negative‖)

    Anchor, positive and negative (N, D) or (D).

        F.triplet_margin_loss(tn.zeros(1, 2), tn.zeros(1, 2), tn.tensor([[0.6, 0.8]]))  # 0.0
    """
    number = reduction_number(reduction, size_average, reduce)
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
    """max(0, margin + distance(anchor, positive) - distance(anchor, negative))

    Anchor, positive and negative (N, *), as the distance takes them.

        F.triplet_margin_with_distance_loss(tn.zeros(1, 2), tn.zeros(1, 2), tn.tensor([[0.6, 0.8]]))  # 0.0
    """
    number = reduction_number(reduction)
    if margin <= 0:
        raise ArgumentError(f"margin={margin} must be greater than 0")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError("anchor, positive and negative must have as many dimensions as each other")
    distance = distance_function or aten("pairwise_distance")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = aten("minimum")(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), number)
