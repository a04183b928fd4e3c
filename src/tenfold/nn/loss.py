"""Losses: how far predictions are from targets. `reduction` is "mean" over the elements, their "sum", or
"none", which keeps them; size_average and reduce are older, deprecated arguments with the same meaning."""

from __future__ import annotations

from typing import Any

from tenfold.base.warning import warn
from tenfold.nn import functional as F
from tenfold.nn.module import Module
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
    """|x - y|, averaged: the mean absolute error

    Input and target (*); the result is a number, or (*) with reduction="none".

        nn.L1Loss()(tn.tensor([1.0, 2.0]), tn.tensor([3.0, 2.0]))  # 1.0
    """

    _function = "l1_loss"


class MSELoss(_OfTwo):
    """(x - y)²

    nn.MSELoss()(tn.tensor([1.0, 2.0]), tn.tensor([1.0, 4.0]))  # 2.
    """

    _function = "mse_loss"


class SmoothL1Loss(_Loss):
    """0.5·(x - y)² / beta within beta, and |x - y| - 0.5·beta beyond

    Input and target (*); the result is a number, or (*) with reduction="none".

        nn.SmoothL1Loss()(tn.tensor([1.0, 3.0]), tn.tensor([1.5, 0.0]))  # 1.3125
    """

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
    """0.5·(x - y)² within delta, and delta·(|x - y| - 0.5·delta) beyond

    Input and target (*); the result is a number, or (*) with reduction="none".

        nn.HuberLoss()(tn.tensor([1.0, 3.0]), tn.tensor([1.5, 0.0]))  # 1.3125
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_Weighted):
    """-weight[y]·x[y], for log-probabilities x (N, C, *) and classes y (N, *)

    The mean is weighted. Targets equal to ignore_index do not count.

        nn.NLLLoss()(tn.full((2, 4), 0.25).log(), tn.tensor([0, 3]))  # 1.3863
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
    """NLLLoss, by its old name for images

    Input (N, C, H, W), target (N, H, W) of classes.

        nn.NLLLoss2d()(tn.full((1, 2, 1, 1), 0.5).log(), tn.zeros(1, 1, 1, dtype=tn.int64))  # 0.6931
    """


class CrossEntropyLoss(_Weighted):
    """-log(exp(x[y]) / Σ exp(x)), for scores x (N, C, *) and classes y (N, *), or probabilities y (N, C, *)

    Targets equal to ignore_index do not count; label_smoothing mixes the target with a uniform distribution.

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
    """-(y·log x + (1 - y)·log(1 - x)), for probabilities x; no logarithm goes below -100

    Input and target (*); the result is a number, or (*) with reduction="none".

        nn.BCELoss()(tn.tensor([0.5, 0.5]), tn.tensor([0.0, 1.0]))  # 0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """BCELoss of sigmoid(x), more exact than in two steps; pos_weight scales the part where y is 1

    Input and target (*); the result is a number, or (*) with reduction="none".

        nn.BCEWithLogitsLoss()(tn.tensor([0.0, 0.0]), tn.tensor([0.0, 1.0]))  # 0.6931
    """

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

    reduction="batchmean" gives the divergence in its mathematical sense.

        nn.KLDivLoss(reduction="batchmean")(tn.full((1, 2), 0.5).log(), tn.full((1, 2), 0.5))  # 0.0
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
    """exp(x) - y·x, or x - y·log(x + eps) with log_input=False; full adds Stirling's approximation of log y!

    Input and target (*); the result is a number, or (*) with reduction="none".

        nn.PoissonNLLLoss()(tn.tensor([0.0, 0.0]), tn.tensor([1.0, 2.0]))  # 1.0
    """

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
    """0.5·(log var + (x - y)² / var), where var is at least eps; full adds log(2π) / 2

    Input, target and var (*), or one variance for each row; the result is a number.

        nn.GaussianNLLLoss()(tn.zeros(2), tn.ones(2), tn.ones(2))  # 0.5
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(_Loss):
    """-log of the probability of the target over all its alignments with the input

    log_probs (T, N, C), targets (N, S) or joined in one dimension, and both lengths (N). With
    zero_infinity, the loss of a target that is too long for its input is 0.

        loss = nn.CTCLoss()
        scores = tn.zeros(5, 1, 3).log_softmax(-1)  # (T, N, C)
        loss(scores, tn.tensor([[1, 2]]), tn.tensor([5]), tn.tensor([2])).shape  # []
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
