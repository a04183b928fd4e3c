"""Room for recursion: programs nest and call as deep as they like, and Python's own stack does not."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

FRAMES = 250_000  # of Python; a call of Purple's takes one or two
STACK_BYTES = 512 << 20
NAME = "purple"

Result = TypeVar("Result")


def with_deep_stack(function: Callable[[], Result], frames: int = FRAMES) -> Result:
    """Run a function where recursion may go deep: on a thread whose stack is large. An interruption from the
    keyboard reaches it there."""
    limit = sys.getrecursionlimit()
    if threading.current_thread().name == NAME:
        sys.setrecursionlimit(max(limit, frames))
        try:
            return function()
        finally:
            sys.setrecursionlimit(limit)
    outcome: list[Any] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append((True, function()))
        except BaseException as error:
            outcome.append((False, error))
        finally:
            done.set()

    size = threading.stack_size(STACK_BYTES)
    try:
        sys.setrecursionlimit(frames)
        thread = threading.Thread(target=work, name=NAME, daemon=True)
        thread.start()
        while not done.is_set():  # a join that is interrupted takes the thread for ended
            try:
                done.wait()
            except KeyboardInterrupt:
                interruption = ctypes.py_object(KeyboardInterrupt)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), interruption)
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if not outcome:
        raise KeyboardInterrupt
    succeeded, value = outcome[0]
    if succeeded:
        return value
    raise value
