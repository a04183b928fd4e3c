"""Tensors in PyTorch's memory formats `channels_last` and `channels_last_3d`.

Such a tensor is a view: the memory behind it holds the channels last, row by row, and its strides say so.
What ops make of it is row-major again."""

from __future__ import annotations

from tenfold.base.errors import ShapeError
from tenfold.flat.strides import FORMATS, contiguous
from tenfold.tensor import Tensor


def arranged(x: Tensor, memory_format: str) -> Tensor:
    """This tensor, or a copy of it with the strides of a format."""
    order = FORMATS[memory_format]
    if x.ndim != len(order):
        raise ShapeError(
            f"memory_format={memory_format!r} is of tensors of {len(order)} dimensions, not of {x.ndim}",
            help="leave it out, or use contiguous_format",
        )
    if tuple([x.stride(dim) for dim in order]) == contiguous([x.shape[dim] for dim in order]):
        return x
    return x.permute(order).clone().permute([order.index(dim) for dim in range(x.ndim)])
