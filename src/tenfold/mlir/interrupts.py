"""Ctrl-C and native code, which must not be left in the middle: a library that is half loaded, or a compiler
that still runs, crashes Python at its exit; a program that has run, and whose results are not yet where they
belong, has written over what they replace."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


_MAIN = threading.main_thread().ident
_SIGINT = int(signal.SIGINT)


class uninterrupted(contextlib.ContextDecorator):
    """A block, or a decorated function, after which an interrupt is heard that came inside."""

    def _recreate_cm(self) -> uninterrupted:
        return uninterrupted()

    def __enter__(self) -> None:
        self._heard: tuple[int, Any] | None = None
        self._handler: Any = None
        if threading.get_ident() == _MAIN:  # signals are the main thread's
            self._handler = signal.signal(_SIGINT, self._hear)
            if not callable(self._handler):  # nobody hears this one
                signal.signal(_SIGINT, self._handler)
                self._handler = None

    def _hear(self, number: int, frame: Any) -> None:
        self._heard = number, frame

    def __exit__(self, *raised: object) -> None:
        if self._handler is not None:
            signal.signal(_SIGINT, self._handler)
            if self._heard is not None:
                self._handler(*self._heard)


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
