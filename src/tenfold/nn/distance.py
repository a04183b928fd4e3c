"""Distances between vectors."""

from __future__ import annotations

from tenfold.nn import functional as F
from tenfold.nn.module import Module
from tenfold.tensor import Tensor


class CosineSimilarity(Module):
    """x1·x2 / (max(‖x1‖, eps)·max(‖x2‖, eps)) along `dim`

    The inputs broadcast; the output has their shape without `dim`.

        nn.CosineSimilarity()(tn.ones(2, 3), tn.ones(2, 3)).shape  # [2]
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """‖x1 - x2 + eps‖, the p-norm along the last dimension

    Inputs (N, D) or (D), output (N) or (); keepdim keeps the last dimension as 1.

        nn.PairwiseDistance()(tn.ones(2, 3), tn.zeros(2, 3)).shape  # [2]
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
