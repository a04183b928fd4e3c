"""Shapes as PyTorch has them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from tenfold.base import package
from tenfold.base.errors import ArgumentError
from tenfold.base.source import capture

__all__ = ["Size"]


class Size(tuple[int, ...]):
    """A shape, as PyTorch has it."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        return tuple.__new__(cls, _checked(sizes))

    def numel(self) -> int:
        count = 1
        for extent in self:
            count *= extent
        return count

    def __repr__(self) -> str:
        return f"{package.shown}.Size({list(self)})"

    def __add__(self, other: Any) -> Any:
        return of_ints(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return of_ints(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return of_ints(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return of_ints(found) if isinstance(index, slice) else found


of_ints = partial(tuple.__new__, Size)  # where the elements are sizes already


def _checked(sizes: Iterable[Any]) -> Iterator[Any]:
    """The sizes, numbers for integer tensors of one element."""
    for place, size in enumerate(sizes):
        if isinstance(size, int):
            yield size
            continue
        try:
            number = operator.index(size)
        except TypeError:
            raise ArgumentError(f"Size takes ints, but item {place} is a {type(size).__name__}").located(
                "Size", capture()
            ) from None
        yield number if hasattr(size, "dtype") else size
