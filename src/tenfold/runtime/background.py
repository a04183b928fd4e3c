"""One thread in which programs are compiled while others run on tier 0."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable, Hashable


class Background:
    """Runs jobs one after the other in a thread of its own, which the first job starts. When the process ends
    it finishes the job at hand and drops the others."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Hashable, Callable[[], None]] | None] = queue.SimpleQueue()
        self._pending: set[Hashable] = set()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self.failures: dict[Hashable, str] = {}  # why a job failed, by its key

    def __contains__(self, key: Hashable) -> bool:
        """Whether a job is under way, or failed before."""
        return key in self._pending or key in self.failures

    def submit(self, key: Hashable, job: Callable[[], None]) -> None:
        self._pending.add(key)
        self._jobs.put((key, job))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tenfold-compile", daemon=True)
            self._thread.start()
            atexit.register(self._stop)

    def wait(self) -> None:
        """Wait until all jobs that were submitted are done."""
        if self._thread is not None and self._thread.is_alive():
            done = threading.Event()
            self._jobs.put((done, done.set))
            done.wait()

    def leave(self) -> None:
        """In a fork, the thread and its jobs are the parent's."""
        self.__init__()  # type: ignore[misc]

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None and not self._stopped:
            key, job = item
            try:
                job()
            except BaseException as error:  # it is for whoever asks where the program ran
                self.failures[key] = f"{type(error).__name__}: {error}"
            finally:
                self._pending.discard(key)

    def _stop(self) -> None:
        self._stopped = True
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join()


background = Background()
os.register_at_fork(after_in_child=background.leave)
