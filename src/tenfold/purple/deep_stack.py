"""Room for recursion: programs nest and call as deep as they like, and Python's own stack does not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from tenfold.base.threads import in_another_thread

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
    try:
        sys.setrecursionlimit(frames)
        return in_another_thread(function, NAME, STACK_BYTES)
    finally:
        sys.setrecursionlimit(limit)
