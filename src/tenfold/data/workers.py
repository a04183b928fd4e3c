"""Worker threads that make batches ahead of use. Each has a queue of its own; results come back in order."""

from __future__ import annotations

import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tenfold.base.devices import Device, get_default_device
from tenfold.base.errors import TenfoldError
from tenfold.base.threads import handed_on
from tenfold.data.collate import map_tensors
from tenfold.data.fetching import END, Fetch
from tenfold.runtime.evaluate import evaluate
from tenfold.tensor import Tensor


class WorkerInfo(NamedTuple):
    """What a worker knows about itself: its number, the number of workers, its seed and the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Thread(threading.local):
    info: WorkerInfo | None = None


_thread = handed_on(_Thread())


def get_worker_info() -> WorkerInfo | None:
    """Information about the worker that calls this; None outside a loader's workers."""
    return _thread.info


def become(info: WorkerInfo) -> None:
    """Let this thread be a worker from now on."""
    _thread.info = info


class Slot:
    """A batch to be made: who makes it, of what, and what came of it."""

    __slots__ = ("done", "error", "indices", "result", "worker")

    def __init__(self, worker: int, indices: Any):
        self.worker = worker
        self.indices = indices
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()


class Crew:
    """The workers of one pass over a data set. Leaving the `with` block, or dropping the crew, stops them.

    No thread refers to the crew: one that is forgotten is collected, and its threads end. So do all at exit.
    """

    def __init__(
        self,
        dataset: Any,
        count: int,
        seed: int,
        make_fetch: Callable[[WorkerInfo], Fetch],
        timeout: float,
    ):
        self.timeout = timeout
        self.inboxes: list[queue.SimpleQueue[Slot | None]] = [queue.SimpleQueue() for _ in range(count)]
        self.stopping = threading.Event()
        device = get_default_device()
        self.threads = [
            threading.Thread(
                target=_work,
                args=(
                    inbox,
                    self.stopping,
                    WorkerInfo(i, count, seed + i, dataset),
                    make_fetch,
                    device,
                ),
                name=f"tenfold-data-{i}",
                daemon=True,
            )
            for i, inbox in enumerate(self.inboxes)
        ]
        self._stop = weakref.finalize(self, _dismiss, self.inboxes, self.stopping, self.threads)
        for thread in self.threads:
            thread.start()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stop()

    def results(self, tasks: Iterator[Any], ahead: int) -> Iterator[Any]:
        """The result for each task, in the order of the tasks; up to `ahead` of them are under way.

        A worker whose samples have run out gets no more tasks.
        """
        waiting: deque[Slot] = deque()
        active = deque(range(len(self.inboxes)))
        tasks = iter(tasks)

        def send() -> None:
            task = next(tasks, END) if active else END
            if task is not END:
                slot = Slot(active[0], task)
                active.rotate(-1)
                waiting.append(slot)
                self.inboxes[slot.worker].put(slot)

        for _ in range(ahead):
            send()
        while waiting:
            slot = waiting.popleft()
            result = self._result(slot)
            if result is END and slot.worker in active:
                active.remove(slot.worker)
            send()
            if result is not END:
                yield result

    def _result(self, slot: Slot) -> Any:
        if not slot.done.acquire(timeout=self.timeout or -1):
            raise TenfoldError(
                f"worker {slot.worker} has not made its batch within {self.timeout} seconds",
                help="give the loader a longer timeout, more workers or a larger prefetch_factor",
            )
        if slot.error is not None:
            slot.error.add_note(f"in worker {slot.worker} of a DataLoader")
            raise slot.error
        return slot.result


def _work(
    inbox: queue.SimpleQueue[Slot | None],
    stopping: threading.Event,
    info: WorkerInfo,
    make_fetch: Callable[[WorkerInfo], Fetch],
    device: Device,
) -> None:
    """The life of a worker thread: until it is sent None, or told to stop."""
    become(info)
    fetch: Fetch | None = None
    with device:
        while (slot := inbox.get()) is not None and not stopping.is_set():
            try:
                if fetch is None:
                    fetch = make_fetch(info)
                slot.result = computed(fetch(slot.indices))
            except BaseException as error:  # whatever it is, it is for the main thread to raise
                slot.error = error
            slot.done.release()
            del slot


def computed(batch: Any) -> Any:
    """A batch whose tensors have their data. What a worker records thus stays its own: in the program of the
    step that takes the batch it would be computed in part, and in another part each time."""
    tensors: list[Tensor] = []
    map_tensors(lambda each: tensors.append(each) or each, batch)  # type: ignore[func-returns-value]
    evaluate([tensor.current() for tensor in tensors])
    return batch


def _dismiss(
    inboxes: list[queue.SimpleQueue[Slot | None]],
    stopping: threading.Event,
    threads: list[threading.Thread],
) -> None:
    """Tell workers to stop after the batch in hand, and wait for those that have none, not for a slow one."""
    stopping.set()
    for inbox in inboxes:
        inbox.put(None)
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(timeout=0.05)
