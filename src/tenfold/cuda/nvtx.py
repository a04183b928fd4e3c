"""`tenfold.cuda.nvtx`: named ranges of a program. They stand in Tenfold's own profiles, as those of
`profiler.record_function` do, whether or not there is a GPU."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.profiler.spans import record_function

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_open = threading.local()
_numbers = itertools.count(1)
_started: dict[int, record_function] = {}


def range_push(msg: str) -> int:
    """Begin a range inside those that this thread has open, and say how many these are."""
    stack = _open.__dict__.setdefault("stack", [])
    stack.append(_entered(msg))
    return len(stack) - 1


@located
def range_pop() -> int:
    """End the innermost range of this thread, and say how many are around it."""
    stack = _open.__dict__.setdefault("stack", [])
    if not stack:
        raise ArgumentError("no range is open in this thread", help="call range_push first")
    stack.pop().__exit__(None, None, None)
    return len(stack)


def range_start(msg: str) -> int:
    """Begin a range, and give the number by which `range_end` ends it."""
    number = next(_numbers)
    _started[number] = _entered(msg)
    return number


@located
def range_end(range_id: int) -> None:
    """End the range of that number."""
    if range_id not in _started:
        raise ArgumentError(f"no range has the number {range_id}", help="give what range_start returned")
    _started.pop(range_id).__exit__(None, None, None)


def mark(msg: str) -> None:
    """Name a moment."""
    with record_function(msg):
        pass


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block, or around each call of a function; the message is formatted with the other
    arguments."""
    with record_function(msg.format(*args, **kwargs)):
        yield


def _entered(msg: str) -> record_function:
    return record_function(msg).__enter__()
