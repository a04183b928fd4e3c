"""`nn.attention.bias`: masks that keep a query from keys that come after it."""

from __future__ import annotations

from enum import IntEnum, auto

from tenfold.base import dtypes
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """From which corner of the scores the diagonal starts."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


def _causal(rows: int, columns: int, diagonal: int) -> Tensor:
    return aten("tril")(aten("ones")([rows, columns], dtype=dtypes.bool_), diagonal)


def causal_upper_left(*size: int) -> Tensor:
    """The mask (queries, keys) by which query i sees the keys up to i."""
    rows, columns = size
    return _causal(rows, columns, 0)


def causal_lower_right(*size: int) -> Tensor:
    """The mask (queries, keys) by which the last query sees all keys, as after a cache of earlier ones."""
    rows, columns = size
    return _causal(rows, columns, columns - rows)
