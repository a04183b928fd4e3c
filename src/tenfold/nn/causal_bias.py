"""`nn.attention.bias`: causal masks, which hide later keys from a query."""

from __future__ import annotations

from enum import IntEnum, auto

from tenfold.base import dtypes
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner of the scores in which the diagonal of the mask starts."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


def _causal(rows: int, columns: int, diagonal: int) -> Tensor:
    return aten("tril")(aten("ones")([rows, columns], dtype=dtypes.bool_), diagonal)


def causal_upper_left(*size: int) -> Tensor:
    """A mask (queries, keys) that lets query i see the keys 0 to i."""
    rows, columns = size
    return _causal(rows, columns, 0)


def causal_lower_right(*size: int) -> Tensor:
    """A mask (queries, keys) that lets the last query see all keys, as with a cache of earlier keys."""
    rows, columns = size
    return _causal(rows, columns, columns - rows)
