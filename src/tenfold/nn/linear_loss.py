"""A linear layer and its cross-entropy loss in one module: LinearCrossEntropyLoss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.nn import functional as F
from tenfold.nn.linear import Linear
from tenfold.nn.loss import _Weighted
from tenfold.tensor import Tensor


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How PyTorch chunks the computation to save memory. A compiled program is not chunked, so these have no
    effect here."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: DType | None = None


class LinearCrossEntropyLoss(_Weighted):
    """Cross entropy of the scores W·x + b

    Inputs x (N, in_features), and targets as in CrossEntropyLoss. With out_features (d₁, …) there are scores
    of all classes at each index of d₁, ….

        loss = nn.LinearCrossEntropyLoss(5, 10)
        loss(tn.randn(3, 5), tn.tensor([1, 0, 4])).backward()
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: Sequence[int] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ):
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ShapeError(f"weight has one number for each of {num_classes} classes, not {weight.shape}")
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(f"label_smoothing lies in [0, 1]: {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(
            in_features, math.prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype
        )
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        scores = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*scores, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(scores),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
