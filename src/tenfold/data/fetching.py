"""How a batch is made of what a sampler gives. Each worker, a thread or a process, makes its own fetch."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from tenfold.data.collate import default_collate
from tenfold.data.dataset import Dataset, gatherer

Fetch = Callable[[Any], Any]
END = object()  # what a fetch gives when its samples have run out


@dataclasses.dataclass(frozen=True)
class Fetching:
    """A data set, and how its samples become batches."""

    dataset: Any
    collate: Callable[[Any], Any]
    iterable: bool
    batched: bool
    batch_size: int | None
    drop_last: bool

    def fetch(self) -> Fetch:
        """A function from what a sampler gives, an index or a list of them, to a batch."""
        if self.iterable:
            return self._next_batch(iter(self.dataset))
        if self.batched:
            gather = gatherer(self.dataset) if self.collate is default_collate else None
            return functools.partial(_batch, self.dataset, self.collate, gather)
        return lambda index: self.collate(_sample(self.dataset, index))

    def own(self) -> Fetching:
        """The same with a copy of the data set, as a worker thread has it: what one sets as an attribute, a
        file that it opens or where it begins, is not seen by the others. What the attributes hold is shared,
        but for data sets inside this one."""
        return dataclasses.replace(self, dataset=_own(self.dataset))

    def _next_batch(self, samples: Iterator[Any]) -> Fetch:
        """Of samples as they come: the next batch, or END."""

        def fetch(_: Any) -> Any:
            if self.batch_size is None:
                sample: Any = next(samples, END)
                return END if sample is END else self.collate(sample)
            found = list(itertools.islice(samples, self.batch_size))
            if not found or (self.drop_last and len(found) < self.batch_size):
                return END
            return self.collate(found)

        return fetch


def _own(value: Any) -> Any:
    if isinstance(value, Dataset):
        try:
            copied = copy.copy(value)
        except Exception:  # a class that forbids copies
            return value
        for name, each in list(getattr(copied, "__dict__", {}).items()):
            if isinstance(each, (Dataset, list, tuple)):
                vars(copied)[name] = _own(each)
        return copied
    if type(value) in (list, tuple) and value and all(isinstance(each, Dataset) for each in value):
        return type(value)([_own(each) for each in value])
    return value


def _batch(
    dataset: Any, collate: Callable[[Any], Any], gather: Callable[[Any], Any] | None, indices: Any
) -> Any:
    indices = list(indices)
    if gather is not None and indices and all(type(index) is int for index in indices):
        return gather(indices)
    fetch_many = getattr(dataset, "__getitems__", None)
    if fetch_many is not None:
        return collate(fetch_many(indices))
    return collate([_sample(dataset, index) for index in indices])


def _sample(dataset: Any, index: Any) -> Any:
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"fetching the sample at index {index!r}")
        raise
