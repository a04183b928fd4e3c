"""Samplers: the order in which the indices of a data set are visited."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from tenfold.base.errors import ArgumentError, constructor
from tenfold.data import draws
from tenfold.tensor import Tensor
from tenfold.tensor.generators import Generator

Index = TypeVar("Index", covariant=True)
_AT_ONCE = 1 << 16  # how many indices are drawn together, of however many


class Sampler(Generic[Index]):
    """An order of indices, or of lists of indices. A subclass defines `__iter__`, and `__len__` if it can."""

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[Index]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class SequentialSampler(Sampler[int]):
    """Every index once, from the first to the last."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order: each once, or with `replacement=True` drawn independently.

    If `num_samples` exceeds the number of indices, there are several passes, each in its own order.
    """

    @constructor
    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        if not isinstance(replacement, bool):
            raise ArgumentError(f"replacement is True or False, not {replacement!r}")
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = None if num_samples is None else checked_count(num_samples, "num_samples")

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, wanted = len(self.data_source), self.num_samples
        if size == 0:
            if self._num_samples is not None:
                raise ArgumentError(f"{wanted} samples of a data set that is empty")
            return
        if self.replacement:
            for start in range(0, wanted, _AT_ONCE):
                count = min(wanted - start, _AT_ONCE)
                yield from draws.with_replacement(size, count, draws.key(self.generator)).tolist()
            return
        while wanted > 0:
            yield from draws.permutation(size, draws.key(self.generator))[:wanted].tolist()
            wanted -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in draws.permutation(len(self.indices), draws.key(self.generator)).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn in proportion to their weights, which need not sum to 1."""

    @constructor
    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        if not isinstance(replacement, bool):
            raise ArgumentError(f"replacement is True or False, not {replacement!r}")
        given = weights.numpy(force=True) if isinstance(weights, Tensor) else weights
        self.weights = np.array(given, np.float64)
        self.num_samples = checked_count(num_samples, "num_samples")
        self.replacement = replacement
        self.generator = generator
        if self.weights.ndim != 1:
            raise ArgumentError(
                f"the weights are one number for each index, not {self.weights.ndim}-dimensional"
            )
        if not np.isfinite(self.weights).all() or (self.weights < 0).any() or not self.weights.any():
            raise ArgumentError("the weights must be finite, none negative and not all zero")
        possible = int(np.count_nonzero(self.weights))
        if not replacement and num_samples > possible:
            raise ArgumentError(
                f"{num_samples} different indices cannot be drawn where {possible} have a weight above zero",
                help="draw fewer, or with replacement=True",
            )

    def __iter__(self) -> Iterator[int]:
        key = draws.key(self.generator)
        yield from draws.weighted(self.weights, self.num_samples, self.replacement, key).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups the indices of another sampler into lists of `batch_size`; `drop_last` drops a shorter list."""

    @constructor
    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool):
        if not isinstance(drop_last, bool):
            raise ArgumentError(f"drop_last is True or False, not {drop_last!r}")
        self.sampler = sampler
        self.batch_size = checked_count(batch_size, "batch_size")
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return batches(len(self.sampler), self.batch_size, self.drop_last)  # type: ignore[arg-type]


def batches(samples: int, batch_size: int, drop_last: bool) -> int:
    """How many batches there are of so many samples."""
    return samples // batch_size if drop_last else -(-samples // batch_size)


def checked_count(number: Any, name: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
        raise ArgumentError(f"{name} is a positive int, not {number!r}")
    return number
