"""Worker processes of a loader. Each has its own data set, makes the batches that it is asked for through a
pipe, and computes on NumPy: no engine is started in it. In the main process a thread waits for each."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import random
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from tenfold.base.errors import ArgumentError, TenfoldError
from tenfold.base.forking import forkable
from tenfold.data.fetching import END, Fetch, Fetching
from tenfold.data.workers import WorkerInfo, become, computed
from tenfold.random import manual_seed
from tenfold.runtime.evaluate import set_engine

# Held while a worker is forked: another one forked meanwhile would inherit the ends of its pipes.
_forking = forkable(threading.RLock())


def context_of(given: Any) -> Any:
    """The context of multiprocessing that a loader was given, by its name or as it is."""
    if not isinstance(given, str):
        return given
    if given not in multiprocessing.get_all_start_methods():
        known = ", ".join(multiprocessing.get_all_start_methods())
        raise ArgumentError(f"there is no multiprocessing context {given!r}", help=f"use one of {known}")
    return multiprocessing.get_context(given)


class Process:
    """A worker process, seen from the main one: a fetch that asks it for batches."""

    def __init__(self, context: Any, info: WorkerInfo, fetching: Fetching, init: Callable[[int], Any] | None):
        self.id, self.lock = info.id, threading.Lock()
        forks = context.get_start_method() == "fork"
        with _forking if forks else contextlib.nullcontext():
            self.connection, theirs = context.Pipe()
            inherited = self.connection if forks else None
            arguments = (theirs, inherited, fetching, info.id, info.num_workers, init)
            self.process = context.Process(target=serve, args=arguments, daemon=True)
            self.process.start()
            theirs.close()

    def begin(self, seed: int) -> None:
        """Begin a pass over the data set."""
        with self.lock:
            self._ask(("begin", seed))

    def __call__(self, indices: Any) -> Any:
        with self.lock:
            return self._ask(("fetch", indices))

    def _ask(self, question: Any) -> Any:
        try:
            self.connection.send(question)
            if self.connection not in wait([self.connection, self.process.sentinel]):
                raise EOFError  # another process may hold the pipe open
            kind, answer = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(1)
            raise TenfoldError(
                f"worker process {self.id} ended unexpectedly, with exit code {self.process.exitcode}",
                help="look for its own message above; a killed one may have run out of memory",
            ) from None
        if kind == "error":
            raise answer
        return END if kind == "end" else answer

    def stop(self) -> None:
        """End the process, also in the middle of a batch."""
        self.process.terminate()
        self.connection.close()


def serve(
    connection: Any,
    inherited: Any,
    fetching: Fetching,
    number: int,
    count: int,
    init: Callable[[int], Any] | None,
) -> None:
    """The life of a worker process: it answers until the main one is gone. A forked worker closes the main
    process's end of the pipe, which it inherits: otherwise the pipe would stay open without that process."""
    if inherited is not None:
        inherited.close()
    set_engine("numpy")
    fetch: Fetch | None = None
    fresh = True
    parent = multiprocessing.parent_process()
    assert parent is not None
    while True:
        try:
            if connection not in wait([connection, parent.sentinel]):
                return  # a process forked later may hold the pipe open
            kind, given = connection.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            if kind == "begin":
                become(WorkerInfo(number, count, given, fetching.dataset))
                _seed(given)
                if fresh and init is not None:
                    init(number)
                fresh, fetch = False, fetching.fetch()
                answer: Any = ("begun", None)
            else:
                assert fetch is not None
                batch = fetch(given)
                answer = ("end", None) if batch is END else ("batch", computed(batch))
        except BaseException as error:  # whatever it is, it is for the main process to raise
            answer = ("error", _sendable(error))
        try:
            connection.send_bytes(_pickled(answer))
        except OSError:
            return  # the main process is gone


def _pickled(answer: Any) -> Any:
    """An answer as bytes, or the error that says why it cannot be sent."""
    try:
        return ForkingPickler.dumps(answer)
    except Exception as error:
        refusal = TenfoldError(
            f"a worker process cannot send its batch: {type(error).__name__}: {error}",
            help="let the data set and collate_fn give tensors, numbers, strings and containers of these",
        )
        return ForkingPickler.dumps(("error", refusal))


def _seed(seed: int) -> None:
    """Let every generator of random numbers begin differently in each worker."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    manual_seed(seed)


def _sendable(error: BaseException) -> BaseException:
    """An error as another process can raise it, with the traceback of this one."""
    text = "".join(traceback.format_exception(error))
    try:
        copied = pickle.loads(pickle.dumps(error))
    except Exception:  # some classes cannot be made again from their arguments
        copied = TenfoldError(f"{type(error).__name__}: {error}")
    copied.add_note(f"in a worker process of a DataLoader:\n{text}")
    return copied
