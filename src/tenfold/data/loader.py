"""DataLoader: batches of a data set, made by the calling thread or by workers, and sent to a device ahead."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, constructor
from tenfold.base.source import capture
from tenfold.data import draws
from tenfold.data.collate import default_collate, default_convert, map_tensors
from tenfold.data.dataset import IterableDataset, Sample
from tenfold.data.fetching import END, Fetch, Fetching
from tenfold.data.processes import Process, context_of
from tenfold.data.sampler import BatchSampler, RandomSampler, SequentialSampler, batches
from tenfold.data.workers import Crew, WorkerInfo, become
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.inputs import split_batch
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.generators import Generator

_FIXED = ("batch_size", "batch_sampler", "dataset", "drop_last", "persistent_workers", "sampler")


class DataLoader(Generic[Sample]):
    """Iterates over a dataset in batches, in order or shuffled.

    ```python
    loader = tn.data.DataLoader(tn.data.TensorDataset(images, labels), batch_size=64, shuffle=True)
    for image, label in loader:
        ...
    ```

    With `num_workers`, workers prepare batches ahead of use, `prefetch_factor` batches each. The order does
    not change. Workers are threads, each with a shallow copy of the dataset, or processes, if
    `multiprocessing_context` is "spawn", "fork" or "forkserver". Use processes if samples take long in Python
    itself; with `persistent_workers` they are kept between epochs.

    With `device`, batches are sent to that device ahead of use, so `pin_memory` is accepted but has no
    effect. If the device is a mesh, or some of its dimensions as in `mesh["data"]`, batches are split over
    its devices, and each process provides its own part of the whole batch.
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
        device: Device | DeviceMesh | str | int | None = None,
    ):
        if not isinstance(num_workers, int) or num_workers < 0:
            raise ArgumentError(f"num_workers is the number of workers, 0 or more, not {num_workers!r}")
        if timeout < 0 or (prefetch_factor is not None and prefetch_factor < 1):
            raise ArgumentError("timeout is not negative and prefetch_factor is 1 or more")
        if num_workers == 0 and (prefetch_factor or persistent_workers or multiprocessing_context):
            raise ArgumentError(
                "prefetch_factor, persistent_workers and multiprocessing_context are for workers, "
                "and there are none",
                help="give num_workers as well",
            )
        if multiprocessing_context is not None:
            context_of(multiprocessing_context)
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
        self.mesh = device if isinstance(device, DeviceMesh) else None
        if isinstance(device, DeviceMesh):
            self.device: Device | None = device.device
        else:
            self.device = None if device is None else Device(device)
        self._epochs = 0
        self._processes: dict[int, Process] = {}  # of workers, while there are any
        weakref.finalize(self, _end, self._processes)
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
        """Does nothing: if there are more threads than processors, they wait."""

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
        fetch = self._sent(self._fetching().fetch())
        for indices in self._indices:
            batch = fetch(indices)
            if batch is END:
                return
            yield batch

    def _by_workers(self) -> Iterator[Any]:
        seed = draws.worker_seed(self.generator, self._epochs)
        self._epochs += 1
        by_processes = self.multiprocessing_context is not None
        make = self._by_process if by_processes else self._by_thread
        try:
            with Crew(self.dataset, self.num_workers, seed, make, self.timeout) as crew:
                ahead = self.num_workers * (self.prefetch_factor or 1)
                yield from crew.results(iter(self._indices), ahead)
        finally:
            if by_processes and not self.persistent_workers:
                _end(self._processes)

    def _fetching(self) -> Fetching:
        return Fetching(
            self.dataset, self.collate_fn, self._iterable, self._batched, self.batch_size, self.drop_last
        )

    def _by_thread(self, info: WorkerInfo) -> Fetch:
        """The fetch of a worker thread, which has its own data set."""
        fetching = self._fetching().own()
        become(info._replace(dataset=fetching.dataset))
        if self.worker_init_fn is not None:
            self.worker_init_fn(info.id)
        return self._sent(fetching.fetch())

    def _by_process(self, info: WorkerInfo) -> Fetch:
        """The fetch of a thread that waits for a worker process."""
        process = self._processes.get(info.id)
        if process is None:
            context = context_of(self.multiprocessing_context)
            process = self._processes[info.id] = Process(context, info, self._fetching(), self.worker_init_fn)
        process.begin(info.seed)
        return self._sent(process)

    def _sent(self, fetch: Fetch) -> Fetch:
        """A fetch whose batches are sent to the loader's device."""
        if self.device is None:
            return fetch
        if self.mesh is not None:
            move = functools.partial(split_batch, mesh=self.mesh)
        else:
            move = functools.partial(_moved, device=self.device)
        return lambda indices: map_tensors(move, fetch(indices))


def _end(processes: dict[int, Process]) -> None:
    while processes:
        processes.popitem()[1].stop()


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
