"""Sizes of windows: one number for all dimensions, or one for each."""

from __future__ import annotations

from typing import Any

from tenfold.errors import ArgumentError


def each_dimension(size: Any, rank: int) -> tuple[int, ...]:
    """The size as a tuple, one number for each of the dimensions."""
    if isinstance(size, (tuple, list)):
        if len(size) != rank:
            raise ArgumentError(f"{size} does not give one number for each of {rank} dimensions")
        return tuple(size)
    return (size,) * rank
