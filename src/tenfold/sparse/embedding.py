"""Embeddings whose gradient is sparse: it stores the rows that were looked up."""

from __future__ import annotations

from typing import Any

from tenfold.autograd.custom import Function
from tenfold.base.errors import UnsupportedError
from tenfold.sparse.tensors import coo
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


class _Lookup(Function):
    """Rows of a table, whose gradient is one row for each index."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, indices: Tensor, padding: int) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.shape, ctx.padding = tuple(weight.shape), padding
        return aten("embedding")(weight, indices)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        indices = ctx.saved_tensors[0].reshape(-1).long()
        rows = gradients[0].reshape(-1, ctx.shape[1])
        if ctx.padding >= 0:
            kept = (indices != ctx.padding).nonzero().reshape(-1)
            indices, rows = indices[kept], rows[kept]
        return coo(indices.unsqueeze(0), rows, ctx.shape), None, None


def lookup(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> Tensor:
    """`embedding(weight, indices)` with a sparse gradient for `weight`."""
    if scale_grad_by_freq:
        raise UnsupportedError("a sparse gradient is not scaled by frequency", help="use sparse=False")
    return _Lookup.apply(weight, indices, padding_idx)
