"""`embedding_bag` of `tenfold.nn.functional`: rows of a table, gathered into bags."""

from __future__ import annotations

from tenfold.base.errors import ArgumentError, ShapeError, UnsupportedError, located
from tenfold.nn.functional_parts import _no_grad_embedding_renorm_
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace.context import context

MODES = {"sum": 0, "mean": 1, "max": 2}


@located
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Returns the sum, mean or maximum of the rows of weight in each bag of indices

    Each row of a matrix of indices is a bag; in a vector of indices, offsets say where each bag begins. With
    max_norm, rows of weight that are longer are first scaled down to it, in place. The row of padding_idx is
    left out.

        F.embedding_bag(tn.tensor([[0, 1]]), tn.tensor([[0.0, 1.0], [2.0, 3.0]]))  # [[1.0, 2.0]]
    """
    if mode not in MODES:
        raise ArgumentError(f"unknown mode {mode!r}", help=f"one of {', '.join(MODES)}")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ArgumentError("a maximum goes neither with scale_grad_by_freq nor with sparse")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError("per_sample_weights go with sums alone", help='use mode="sum"')
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ShapeError(f"per_sample_weights are not of the input's shape, {tuple(input.shape)}")
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError("a matrix of indices takes no offsets: each of its rows is a bag")
        bags, size = input.shape
        offsets = aten("arange")(bags, device=input.device, dtype=input.dtype) * size
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        include_last_offset = False  # the rows themselves say where each bag ends
    elif input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ShapeError(
            "takes a matrix of indices, or a vector and a vector of offsets",
            help="offsets say where in the vector each bag begins",
        )
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if sparse and context.grad_enabled and weight.requires_grad:
        if padding_idx is not None:
            raise UnsupportedError("a sparse gradient of bags has no padding_idx", help="use sparse=False")
        # The rows that are looked up are a table of their own, whose gradient is sparse in the first.
        from tenfold.sparse.embedding import lookup  # few need sparse tensors, which take long to import

        weight, sparse = lookup(weight, input, -1, scale_grad_by_freq), False
        input = aten("arange")(input.shape[0], device=input.device, dtype=input.dtype)
    return aten("embedding_bag")(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]
