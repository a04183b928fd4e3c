"""Ctrl-C and native code, which must not be left in the middle: a library that is half loaded, or a compiler
that still runs, crashes Python at its exit."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A block, or a decorated function, after which an interrupt is heard that came inside."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield  # signals are the main thread's, and here nobody hears this one
        return
    heard: list[Any] = []
    signal.signal(signal.SIGINT, lambda *arguments: heard.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if heard:
            handler(*heard[0])


def aside(work: Callable[[], Result]) -> Result:
    """What some long work gives, done in a thread of its own: an interrupt is heard at once, and yet the
    process ends only when the work has."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    done: list[Result] = []
    failed: list[BaseException] = []
    finished = threading.Event()

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)
        finished.set()

    threading.Thread(target=run).start()
    finished.wait()  # and not join(): interrupted, that takes the thread for one that has ended
    if failed:
        raise failed.pop()
    return done.pop()
