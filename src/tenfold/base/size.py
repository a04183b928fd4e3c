"""Shapes as PyTorch has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base import package

__all__ = ["Size"]


class Size(tuple[int, ...]):
    """A shape, as PyTorch has it."""

    __slots__ = ()

    def numel(self) -> int:
        count = 1
        for extent in self:
            count *= extent
        return count

    def __repr__(self) -> str:
        return f"{package.shown}.Size({list(self)})"

    def __add__(self, other: Sequence[int]) -> Size:  # type: ignore[override]
        return Size(tuple(self) + tuple(other))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found
