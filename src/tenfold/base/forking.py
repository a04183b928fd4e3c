"""Locks across a fork. A child has one thread: a lock that another thread held stays taken in it forever.

So all locks are taken before a fork, and released after it on both sides. They are taken together or not at
all, for no order is right for all of them: modules register their locks when they are first used. One that is
not to be had soon, as while a large program is compiled, is made anew in the child.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

Lock = TypeVar("Lock")

PATIENCE = 2.0  # seconds
_locks: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # by id
_held: list[Any] = []
_forking = threading.Lock()


def forkable(lock: Lock) -> Lock:
    """Register a lock, as it is made."""
    _locks[id(lock)] = lock
    return lock


class Imports:
    """The imports on first use that are under way. To Python's import system a module that another thread
    was importing at a fork stays half imported in the child, which would wait for it forever. So a fork
    waits for them, as for a lock."""

    def __init__(self) -> None:
        self._ended = threading.Condition(threading.RLock())
        self._threads: list[int] = []  # one for each import

    def _at_fork_reinit(self) -> None:
        self._ended = threading.Condition(threading.RLock())
        self._threads = [thread for thread in self._threads if thread == threading.get_ident()]

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """A block that imports."""
        thread = threading.get_ident()
        with self._ended:
            self._threads.append(thread)
        try:
            yield
        finally:
            with self._ended:
                self._threads.remove(thread)
                self._ended.notify_all()

    def acquire(self, timeout: float) -> bool:
        """Keep other threads from beginning one, once they have ended theirs."""
        end, own = time.monotonic() + timeout, threading.get_ident()
        if not self._ended.acquire(timeout=timeout):
            return False
        while any(thread != own for thread in self._threads):
            if not self._ended.wait(max(0.0, end - time.monotonic())):
                self._ended.release()
                return False
        return True

    def release(self) -> None:
        self._ended.release()


imports = forkable(Imports())


def _before() -> None:
    _forking.acquire()
    end, awaited = time.monotonic() + PATIENCE, None
    while (left := end - time.monotonic()) > 0:
        if awaited is None or _take(awaited, left):
            awaited = next((lock for lock in _all() if lock is not awaited and not _take(lock)), None)
            if awaited is None:
                return
        _release()
    for lock in _all():
        _take(lock)


def _all() -> list[Any]:
    return [lock for reference in _locks.valuerefs() if (lock := reference()) is not None]


def _take(lock: Any, seconds: float = 0.0) -> bool:
    taken = lock.acquire(timeout=seconds)
    if taken:
        _held.append(lock)
    return taken


def _release() -> None:
    while _held:
        _held.pop().release()


def _in_parent() -> None:
    _release()
    _forking.release()


def _in_child() -> None:
    held = set(map(id, _held))
    for lock in _all():
        if id(lock) not in held:
            lock._at_fork_reinit()
    _in_parent()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
