"""DataLoader: batches of a data set, made by the calling thread or by workers, and sent to a device ahead."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, constructor
from tenfold.base.source import capture
from tenfold.data import draws
from tenfold.data.collate import default_collate, default_convert, map_tensors
from tenfold.data.dataset import IterableDataset, gatherer
from tenfold.data.sampler import BatchSampler, RandomSampler, SequentialSampler, batches
from tenfold.data.workers import END, Crew, Fetch
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.generators import Generator

_FIXED = ("batch_size", "batch_sampler", "dataset", "drop_last", "persistent_workers", "sampler")


class DataLoader:
    """Batches of a data set, in order or shuffled, as often as it is iterated.

    ```python
    loader = tn.data.DataLoader(tn.data.TensorDataset(images, labels), batch_size=64, shuffle=True)
    for image, label in loader:
        ...
    ```

    `num_workers` threads make batches ahead, `prefetch_factor` for each worker; their order does not change.
    `device` says where batches are to be: they are sent there before they are asked for. Threads share memory
    and are made in no time, so `pin_memory`, `persistent_workers` and `multiprocessing_context` have nothing
    to do; they are accepted.
    """

    @constructor
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        device: Device | str | int | None = None,
    ):
        if not isinstance(num_workers, int) or num_workers < 0:
            raise ArgumentError(f"num_workers is the number of threads, 0 or more, not {num_workers!r}")
        if timeout < 0 or (prefetch_factor is not None and prefetch_factor < 1):
            raise ArgumentError("timeout is not negative and prefetch_factor is 1 or more")
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
            raise ArgumentError(
                "prefetch_factor and persistent_workers are for workers, and there are none",
                help="give num_workers as well",
            )
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError(
                "an IterableDataset decides on its own order: it takes no shuffle, sampler or batch_sampler",
                help="shuffle in its __iter__",
            )
        if sampler is not None and shuffle:
            raise ArgumentError("a sampler decides on the order: it goes with no shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ArgumentError(
                "a batch_sampler decides alone: it goes with no batch_size, shuffle, sampler or drop_last"
            )
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is None and drop_last:
            raise ArgumentError("without batches (batch_size=None) there is no last one to drop")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
            raise ArgumentError(f"batch_size is a positive int or None, not {batch_size!r}")
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None and sampler is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self.multiprocessing_context = multiprocessing_context
        self.pin_memory_device, self.in_order = pin_memory_device, in_order
        self.prefetch_factor = prefetch_factor if prefetch_factor or not num_workers else 2
        self.persistent_workers = persistent_workers
        self.device = None if device is None else Device(device)
        self._epochs = 0
        self._batched = batch_sampler is not None or batch_size is not None
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "collate_fn" in self.__dict__:
            raise ArgumentError(
                f"{name} of a DataLoader cannot be changed: its samplers were made for it",
                help=f"make another DataLoader with {name}=…",
            ).located("DataLoader", capture())
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return self._get_iterator()

    def _get_iterator(self) -> Iterator[Any]:
        """One pass over the data set."""
        if self.num_workers:
            return WorkersIterator(self._by_workers(), self)
        made = self._by_caller()
        # On the CPU there is nothing to send, and so nothing to gain by reading ahead.
        ahead = made if self.device is None or self.device.type == "cpu" else _one_ahead(made)
        return CallersIterator(ahead, self)

    def check_worker_number_rationality(self) -> None:
        """Nothing: threads wait where there are more of them than processors."""

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._indices)  # type: ignore[arg-type]
        samples = len(self.dataset)
        return samples if self.batch_size is None else batches(samples, self.batch_size, self.drop_last)

    @property
    def _indices(self) -> Iterable[Any]:
        """What each fetch is asked for: an index, or a list of them."""
        if self._iterable:
            return itertools.repeat(None)
        chosen = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert chosen is not None
        return chosen

    def _by_caller(self) -> Iterator[Any]:
        fetch = self._fetch()
        for indices in self._indices:
            batch = fetch(indices)
            if batch is END:
                return
            yield batch

    def _by_workers(self) -> Iterator[Any]:
        seed = draws.worker_seed(self.generator, self._epochs)
        self._epochs += 1
        with Crew(
            self.dataset, self.num_workers, seed, self._fetch, self.worker_init_fn, self.timeout
        ) as crew:
            ahead = self.num_workers * (self.prefetch_factor or 1)
            yield from crew.results(iter(self._indices), ahead)

    def _fetch(self) -> Fetch:
        """A function from what a sampler gives to a batch, on the device; each worker has one of its own."""
        if self._iterable:
            made = self._next_batch(iter(self.dataset))
        elif self._batched:
            made = functools.partial(_batch, self.dataset, self.collate_fn, self._gather())
        else:
            made = lambda index: self.collate_fn(_sample(self.dataset, index))
        if self.device is None:
            return made
        move = functools.partial(_moved, device=self.device)
        return lambda indices: map_tensors(move, made(indices))

    def _gather(self) -> Callable[[Any], Any] | None:
        return gatherer(self.dataset) if self.collate_fn is default_collate else None

    def _next_batch(self, samples: Iterator[Any]) -> Fetch:
        """Of samples as they come: the next batch, or END."""

        def fetch(_: Any) -> Any:
            if self.batch_size is None:
                sample: Any = next(samples, END)
                return END if sample is END else self.collate_fn(sample)
            found = list(itertools.islice(samples, self.batch_size))
            if not found or (self.drop_last and len(found) < self.batch_size):
                return END
            return self.collate_fn(found)

        return fetch


class LoaderIterator:
    """One pass over a data set: its batches, one after the other."""

    def __init__(self, batches: Iterator[Any], loader: DataLoader):
        self._batches, self._loader, self._num_yielded = batches, loader, 0
        self._dataset, self._num_workers = loader.dataset, loader.num_workers

    def __iter__(self) -> LoaderIterator:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._num_yielded += 1
        return batch

    def __len__(self) -> int:
        return len(self._loader)


class CallersIterator(LoaderIterator):
    """A pass whose batches are made when they are asked for."""


class WorkersIterator(LoaderIterator):
    """A pass whose batches workers make ahead."""

    def close(self) -> None:
        """Let the workers go."""
        self._batches.close()  # type: ignore[attr-defined]

    _shutdown_workers = close


def _batch(
    dataset: Any, collate: Callable[[Any], Any], gather: Callable[[Any], Any] | None, indices: Any
) -> Any:
    indices = list(indices)
    if gather is not None and indices and all(type(each) is int for each in indices):
        return gather(indices)
    fetch_many = getattr(dataset, "__getitems__", None)
    if fetch_many is not None:
        return collate(fetch_many(indices))
    return collate([_sample(dataset, each) for each in indices])


def _sample(dataset: Any, index: Any) -> Any:
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"fetching the sample at index {index!r}")
        raise


def _moved(tensor: Tensor, device: Device) -> Tensor:
    if tensor.device is device.resolved:
        return tensor
    if tensor.requires_grad:
        return tensor.to(device)
    return leaf(tensor._host(), device, tensor.dtype)


def _one_ahead(made: Iterator[Any]) -> Iterator[Any]:
    """The same batches, each made before the one in front of it is used; an error comes in its turn."""
    held, failure = END, None
    while failure is None:
        try:
            following = next(made, END)
        except Exception as error:
            following, failure = END, error
        if held is not END:
            yield held
        held = following
        if held is END:
            break
    if failure is not None:
        raise failure
