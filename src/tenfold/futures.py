"""`tenfold.futures`: values that are set later, by another thread or a callback."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tenfold.base.errors import ArgumentError

Result = TypeVar("Result")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[Result]):
    """A value that is set once. Waiting for it returns the value, or raises the error that was set
    instead."""

    def __init__(self, *, devices: Sequence[Any] | None = None):
        self._future: concurrent.futures.Future[Result] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether the value or an error was set."""
        return self._future.done()

    def wait(self) -> Result:
        """Wait until the value is set, and return it."""
        return self._future.result()

    def value(self) -> Result:
        """The value, which must have been set."""
        if not self.done():
            raise RuntimeError("the future has no value yet; wait() waits for it")
        return self._future.result()

    def set_result(self, result: Result) -> None:
        """Set the value, and call what waits for it."""
        if self.done():
            raise RuntimeError("the future has a value already")
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which waiting raises."""
        if not isinstance(result, BaseException):
            raise TypeError(f"{result!r} is of type {type(result).__name__}, not an Exception")
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future[Result]], Any]) -> None:
        """Call a function with this future once it is done."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[Result]], Any]) -> Future[Any]:
        """A future of the result of a function, which is called with this future once it is done."""
        following: Future[Any] = Future()

        def run(future: Future[Result]) -> None:
            try:
                result = callback(future)
            except BaseException as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(run)
        return following


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future that is done when all of these futures are, with the first error among them if there is
    one."""
    _require_futures(futures)
    collected: Future[list[Future[Any]]] = Future()
    waiting, lock = [len(futures)], threading.Lock()

    def one_is_done(_: Future[Any]) -> None:
        with lock:
            waiting[0] -= 1
            remaining = waiting[0]
        if remaining:
            return
        error = next((each._future.exception() for each in futures if each._future.exception()), None)
        if error is None:
            collected.set_result(list(futures))
        else:
            collected.set_exception(error)

    for future in futures:
        future.add_done_callback(one_is_done)
    if not futures:
        collected.set_result([])
    return collected


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all futures, and return their values."""
    _require_futures(futures)
    return [future.wait() for future in futures]


def _require_futures(futures: Sequence[Any]) -> None:
    for future in futures:
        if not isinstance(future, Future):
            raise ArgumentError(f"takes a list of futures, and {future!r} is none")
