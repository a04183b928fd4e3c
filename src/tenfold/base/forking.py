"""Locks across a fork. A child has one thread: a lock that another thread held stays taken in it forever.

So all locks are taken before a fork, the outermost first, and released after it on both sides. One that is
not to be had soon, as while a large program is compiled, is made anew in the child.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, TypeVar

Lock = TypeVar("Lock")

PATIENCE = 2.0  # seconds
_locks: list[Any] = []  # lower layers, whose locks are taken inside others', are imported first
_held: list[Any] = []
_forking = threading.Lock()


def forkable(lock: Lock) -> Lock:
    """Register a lock of a module, as it is made."""
    _locks.append(lock)
    return lock


def _before() -> None:
    _forking.acquire()
    end = time.monotonic() + PATIENCE
    for lock in reversed(_locks):
        if lock.acquire(timeout=max(0.0, end - time.monotonic())):
            _held.append(lock)


def _in_parent() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


def _in_child() -> None:
    for lock in _locks:
        if lock not in _held:
            lock._at_fork_reinit()
    _in_parent()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
