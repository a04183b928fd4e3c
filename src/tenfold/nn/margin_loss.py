"""Margin losses of class scores and of distances between embeddings: 0 if the margin is kept."""

from __future__ import annotations

from collections.abc import Callable

from tenfold.base.errors import ArgumentError
from tenfold.nn import functional as F
from tenfold.nn.distance import PairwiseDistance
from tenfold.nn.loss import _Loss, _OfTwo, _Weighted
from tenfold.nn.module import in_layer
from tenfold.tensor import Tensor


class SoftMarginLoss(_OfTwo):
    """log(1 + exp(-y·x)), for targets 1 and -1

    Input and target (*); the result is a number, or (*) with reduction="none".

        nn.SoftMarginLoss()(tn.tensor([0.0, 0.0]), tn.tensor([1.0, -1.0]))  # 0.6931
    """

    _function = "soft_margin_loss"


class MultiLabelMarginLoss(_OfTwo):
    """Σ max(0, 1 - (x[y] - x[i])) / C, over the correct classes y and the others, i

    Target (N, C) lists the right classes of each sample, up to the first -1.

        nn.MultiLabelMarginLoss()(tn.tensor([[0.5, 1.0, 0.0]]), tn.tensor([[1, -1, -1]]))  # 0.1667
    """

    _function = "multilabel_margin_loss"


class _WithMargin(_Loss):
    """A loss whose one option is a margin."""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_WithMargin):
    """x where y is 1, and max(0, margin - x) where it is -1

    Input and target (*); the result is a number, or (*) with reduction="none".

        nn.HingeEmbeddingLoss()(tn.tensor([0.5, 0.5]), tn.tensor([1.0, -1.0]))  # 0.5
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_WithMargin):
    """max(0, -y·(x1 - x2) + margin): x1 should be larger where y is 1, and smaller where it is -1

    Inputs and target (N), the target 1 or -1.

        nn.MarginRankingLoss()(tn.tensor([1.0]), tn.tensor([2.0]), tn.tensor([1.0]))  # 1.0
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_WithMargin):
    """1 - cos(x1, x2) where y is 1, and max(0, cos(x1, x2) - margin) where it is -1

    Inputs (N, D) and target (N), or (D) and ().

        nn.CosineEmbeddingLoss()(tn.ones(2, 3), tn.ones(2, 3), tn.tensor([1.0, -1.0]))  # 0.5
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Weighted):
    """-Σ (y·log sigmoid(x) + (1 - y)·log sigmoid(-x)) / C, over the classes

    Input and target (N, C).

        nn.MultiLabelSoftMarginLoss()(tn.zeros(1, 2), tn.tensor([[0.0, 1.0]]))  # 0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_Weighted):
    """Σ max(0, margin - x[y] + x[i])^p / C, over the classes i other than the correct one, y

    Input (N, C), target (N) of classes.

        nn.MultiMarginLoss()(tn.tensor([[0.5, 1.0]]), tn.tensor([1]))  # 0.25
    """

    @in_layer
    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ArgumentError(f"p is 1 or 2, not {p}")
        if weight is not None and weight.ndim != 1:
            raise ArgumentError(f"a weight for each class has one dimension, not {weight.ndim}")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """max(0, ‖anchor - positive‖ - ‖anchor - negative‖ + margin), by the p-norm

    With swap, ‖positive - negative‖ replaces ‖anchor - negative‖ if it is smaller.

        nn.TripletMarginLoss()(tn.zeros(1, 2), tn.zeros(1, 2), tn.tensor([[0.6, 0.8]]))  # 0.0
    """

    @in_layer
    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ArgumentError(f"the margin is positive, not {margin}")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin), by a distance of your own

    Anchor, positive and negative (N, *), as the distance takes them.

        apart = lambda a, b: (a - b).abs().sum(-1)
        loss = nn.TripletMarginWithDistanceLoss(distance_function=apart)
        loss(tn.zeros(1, 2), tn.zeros(1, 2), tn.full((1, 2), 0.25))  # 0.5
    """

    @in_layer
    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ArgumentError(f"the margin is positive, not {margin}")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin,
            swap=self.swap, reduction=self.reduction,
        )  # fmt: skip
