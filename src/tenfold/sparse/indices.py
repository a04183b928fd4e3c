"""Computing with indices of sparse tensors, as NumPy arrays on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def keys(where: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """One number for each element, in the order of the coordinates."""
    if not len(shape):
        return np.zeros(where.shape[1], np.int64)
    if not where.shape[1]:
        return np.zeros(0, np.int64)
    return np.ravel_multi_index(tuple(where), tuple(shape))


def in_order(where: np.ndarray, shape: Sequence[int]) -> bool:
    """Whether each element stands after those with smaller coordinates, and none is repeated."""
    numbers = keys(where, shape)
    return bool((numbers[1:] > numbers[:-1]).all())


def merged(where: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray | None]:
    """The coordinates without repetition, in order; and for each element the one it is merged with, or None
    where all are in order already."""
    if in_order(where, shape):
        return where, None
    _, first, group = np.unique(keys(where, shape), return_index=True, return_inverse=True)
    return np.ascontiguousarray(where[:, first]), group.reshape(-1)


def common(one: np.ndarray, other: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The places, in each of two lists without repetition, of the coordinates that are in both."""
    _, first, second = np.intersect1d(
        keys(one, shape), keys(other, shape), assume_unique=True, return_indices=True
    )
    return first, second


def expanded(starts: np.ndarray) -> np.ndarray:
    """The row of each element, from where each row begins."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def compressed(
    where: np.ndarray, shape: Sequence[int], axis: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The elements line by line along an axis: their order, where lines begin, their other coordinate."""
    order = np.argsort(where[axis], kind="stable")
    counts = np.bincount(where[axis], minlength=shape[axis])
    return order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), where[1 - axis][order]


def pairs(one: np.ndarray, other: np.ndarray, inner: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of the elements that a product of two matrices multiplies: where the column of the one is
    the row of the other. The rows of the second are in order."""
    counts = np.bincount(other[0], minlength=inner)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if inner else np.zeros(0, np.int64)
    repeats = counts[one[1]]
    first = np.repeat(np.arange(one.shape[1]), repeats)
    begun = np.repeat(np.cumsum(repeats) - repeats, repeats)
    return first, np.repeat(starts[one[1]], repeats) + np.arange(len(first)) - begun


def stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([np.asarray(row, np.int64) for row in rows])
