"""Datasets: samples by index (`Dataset`) or as they come (`IterableDataset`), and their combinations."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from tenfold.base.errors import ArgumentError, IndexOutOfRange, ShapeError, constructor, located
from tenfold.data import draws
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.generators import Generator

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples by index. A subclass defines `__getitem__`, and `__len__`, which most samplers need.

    A subclass that can fetch many samples at once may define `__getitems__`, which takes a list of indices
    and returns a list of samples.
    """

    def __getitem__(self, index: Any) -> Sample:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample]):
    """Samples as a stream. A subclass defines `__iter__`.

    Each worker of a loader iterates over the whole dataset, so `__iter__` must pick the worker's share by
    `get_worker_info()`.
    """

    def __iter__(self) -> Iterator[Sample]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors of the same length: sample i is (x[i], y[i], ...)."""

    tensors: tuple[Tensor, ...]

    @constructor
    def __init__(self, *tensors: Tensor):
        if not tensors or not all(isinstance(tensor, Tensor) and tensor.ndim for tensor in tensors):
            raise ArgumentError("TensorDataset takes one or more tensors that have rows")
        lengths = [len(tensor) for tensor in tensors]
        if len(set(lengths)) > 1:
            raise ShapeError(f"the tensors must be equally long; they have {lengths} rows")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Sample]):
    """Zips datasets: sample i is the tuple of their samples i, or the dict if they are named."""

    datasets: tuple[Any, ...] | dict[str, Any]

    @constructor
    def __init__(self, *args: Any, **kwargs: Any):
        if bool(args) == bool(kwargs):
            raise ArgumentError("StackDataset takes data sets, either all by position or all by name")
        self.datasets = args or kwargs
        lengths = [len(member) for member in self._members()]
        if len(set(lengths)) > 1:
            raise ShapeError(f"the data sets must be equally long; they have {lengths} samples")

    def _members(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return len(next(iter(self._members())))


class ConcatDataset(Dataset[Sample]):
    """Concatenates datasets under one range of indices."""

    @constructor
    def __init__(self, datasets: Iterable[Dataset[Any]]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset takes at least one data set")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise ArgumentError("an IterableDataset has no indices to put together", help="use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))  # type: ignore

    def __getitem__(self, index: int) -> Any:
        size = len(self)
        if not -size <= index < size:
            raise IndexOutOfRange(f"index {index} is out of range for {size} samples")
        place = index % size
        which = bisect.bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Chains iterable datasets."""

    def __init__(self, datasets: Iterable[Dataset[Any]]):
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise ArgumentError(f"ChainDataset takes IterableDatasets, not {type(dataset).__name__}")
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)  # type: ignore


class Subset(Dataset[Sample]):
    """The samples of a dataset at the given indices."""

    def __init__(self, dataset: Dataset[Any], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        chosen = [self.indices[index] for index in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)  # type: ignore[attr-defined]
        return [self.dataset[each] for each in chosen]

    def __len__(self) -> int:
        return len(self.indices)


@located
def random_split(
    dataset: Dataset[Any], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset]:
    """Split a dataset at random into disjoint subsets of these lengths, or these fractions of the whole."""
    size = len(dataset)  # type: ignore[arg-type]
    if any(length < 0 for length in lengths):
        raise ArgumentError(f"the lengths {list(lengths)} of a split cannot be negative")
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _shares(size, lengths)
    if sum(lengths) != size:
        raise ArgumentError(f"the lengths {list(lengths)} do not add up to the {size} samples there are")
    order = draws.permutation(size, draws.key(generator)).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - length : end]) for length, end in zip(lengths, ends)]


def _shares(size: int, fractions: Sequence[float]) -> list[int]:
    """What fractions of a whole come to; what rounding down leaves over is dealt out one by one."""
    lengths = [math.floor(size * fraction) for fraction in fractions]
    for i in range(size - sum(lengths)):
        lengths[i % len(lengths)] += 1
    return lengths


Gather = Callable[[Sequence[int]], Any]


def gatherer(dataset: Any) -> Gather | None:
    """How to fetch a whole collated batch at once, for data sets that are rows of tensors; None for others.

    Only for the classes themselves: a subclass may have a `__getitem__` of its own.
    """
    if type(dataset) is TensorDataset:
        if any(tensor.requires_grad for tensor in dataset.tensors):
            return None  # a batch of copied rows would have no history
        return lambda indices: [_rows(tensor, indices) for tensor in dataset.tensors]
    if type(dataset) is Subset:
        inner = gatherer(dataset.dataset)
        if inner is None:
            return None
        return lambda indices: inner([dataset.indices[index] for index in indices])
    if type(dataset) is StackDataset:
        names = list(dataset.datasets) if isinstance(dataset.datasets, dict) else None
        members = [gatherer(member) for member in dataset._members()]
        if not all(members):
            return None
        if names is None:
            return lambda indices: [member(indices) for member in members if member]
        return lambda indices: {name: member(indices) for name, member in zip(names, members) if member}
    return None


def _rows(tensor: Tensor, indices: Sequence[int]) -> Tensor:
    """A new tensor of these rows: copied by the host, or by one op where the data lives on another device."""
    chosen = np.array(indices, np.int64)
    length = len(tensor)
    if len(chosen) and not (-length <= chosen.min() and chosen.max() < length):
        wrong = next(index for index in indices if not -length <= index < length)
        raise IndexOutOfRange(f"index {wrong} is out of range for {length} samples")
    if tensor.is_cpu:
        return leaf(tensor._host()[chosen], tensor.device, tensor.dtype)
    return tensor.index_select(0, leaf(chosen % length, tensor.device))
