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


def aside(*works: Callable[[], Result]) -> list[Result]:
    """What long pieces of work give, done at once in threads of their own: an interrupt is heard at once, and
    yet the process ends only when they have."""
    if len(works) == 1 and threading.current_thread() is not threading.main_thread():
        return [works[0]()]
    done: dict[int, Result] = {}
    failed: list[BaseException] = []
    finished = [threading.Event() for _ in works]

    def run(place: int) -> None:
        try:
            done[place] = works[place]()
        except BaseException as error:
            failed.append(error)
        finished[place].set()

    for place in range(len(works)):
        threading.Thread(target=run, args=(place,)).start()
    for each in finished:
        each.wait()  # and not join(): interrupted, that takes the thread for one that has ended
    if failed:
        raise failed[0]
    return [done[place] for place in range(len(works))]
