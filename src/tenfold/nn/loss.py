"""Losses: how far predictions are from targets. `reduction` is "mean" over the elements, their "sum", or
"none", which keeps them; size_average and reduce are its old names, and deprecated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.errors import ArgumentError
from tenfold.nn import functional as F
from tenfold.nn.distance import PairwiseDistance
from tenfold.nn.module import Module, in_layer
from tenfold.nn.warning import warn
from tenfold.tensor import Tensor


class _Loss(Module):
    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    mean, whole = size_average is not False, reduce is not False
    chosen = "none" if not whole else "mean" if mean else "sum"
    warn(f"size_average and reduce are deprecated: use reduction={chosen!r}")
    return chosen


class _OfTwo(_Loss):
    """A loss of an input and a target, without options."""

    _function: str

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return getattr(F, self._function)(input, target, reduction=self.reduction)


class _Weighted(_Loss):
    """A loss with a weight for each class or element, kept as a buffer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_OfTwo):
    """|x - y|"""

    _function = "l1_loss"


class MSELoss(_OfTwo):
    """(x - y)²

    nn.MSELoss()(tn.tensor([1.0, 2.0]), tn.tensor([1.0, 4.0]))  # 2.
    """

    _function = "mse_loss"


class SoftMarginLoss(_OfTwo):
    """log(1 + exp(-y·x)), for targets 1 and -1"""

    _function = "soft_margin_loss"


class MultiLabelMarginLoss(_OfTwo):
    """Σ max(0, 1 - (x[y] - x[i])) / C, over the classes y that are right and i that are not

    Target (N, C) lists the right classes of each sample, up to the first -1.
    """

    _function = "multilabel_margin_loss"


class SmoothL1Loss(_Loss):
    """0.5·(x - y)² / beta within beta, and |x - y| - 0.5·beta beyond"""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """0.5·(x - y)² within delta, and delta·(|x - y| - 0.5·delta) beyond"""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_Weighted):
    """-weight[y]·x[y], for log-probabilities x (N, C, *) and classes y (N, *)

    The mean is over the weights. Targets of ignore_index do not count.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """NLLLoss, by its old name for images."""


class CrossEntropyLoss(_Weighted):
    """-log(exp(x[y]) / Σ exp(x)), for scores x (N, C, *) and classes y (N, *), or probabilities y (N, C, *)

    Classes of ignore_index do not count; label_smoothing mixes the target with all classes alike.

        loss = nn.CrossEntropyLoss()
        loss(tn.zeros(3, 5), tn.tensor([1, 0, 4]))  # log 5
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class BCELoss(_Weighted):
    """-(y·log x + (1 - y)·log(1 - x)), for probabilities x; no logarithm goes below -100"""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """BCELoss of sigmoid(x), more exactly than in two steps; pos_weight scales the part where y is 1"""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """y·(log y - x), for log-probabilities x; with log_target y is logarithms too

    The divergence of distributions is reduction="batchmean".
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """exp(x) - y·x, or without log_input x - y·log(x + eps); full adds Stirling's approximation of log y!"""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
            reduction=self.reduction,
        )  # fmt: skip


class GaussianNLLLoss(_Loss):
    """0.5·(log var + (x - y)² / var), var being at least eps; full adds log(2π) / 2"""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """x where y is 1, and max(0, margin - x) where it is -1"""

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """max(0, -y·(x1 - x2) + margin): x1 is to be larger where y is 1, smaller where it is -1"""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cos(x1, x2) where y is 1, and max(0, cos(x1, x2) - margin) where it is -1"""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Weighted):
    """-Σ (y·log sigmoid(x) + (1 - y)·log sigmoid(-x)) / C, over the classes"""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_Weighted):
    """Σ max(0, margin - x[y] + x[i])^p / C, over the classes i other than the right one, y"""

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

    With swap, the distance of positive and negative counts if it is smaller than the second.
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
    """TripletMarginLoss by a distance of your own, such as lambda a, b: 1 - F.cosine_similarity(a, b)"""

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


class CTCLoss(_Loss):
    """-log of the probability of the target over all its alignments with the input

    log_probs (T, N, C), targets (N, S) or joined in one dimension, and both lengths (N). zero_infinity makes
    losses of targets that do not fit zero.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
