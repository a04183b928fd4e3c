"""Signals and native code, which must not be left in the middle: a library that is half loaded, or a compiler
that still runs, crashes Python at its exit. Python runs a signal's handler between any two steps of the main
thread, and what it raises (Ctrl-C, a timeout by SIGALRM) is the user's exception, not an engine's."""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tenfold.base.forking import forkable

Result = TypeVar("Result")

ENGINES = frozenset(("tenfold", "jaxlib", "jax_plugins", "torch_mlir", "iree", "numpy", "ml_dtypes"))
_lock = forkable(threading.RLock())


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A block after which the handlers of signals run that came inside."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    handlers = {valid_signal: signal.getsignal(valid_signal) for valid_signal in signal.valid_signals()}
    heard: list[tuple[Any, Any]] = []

    def hear(number: int, frame: Any) -> None:
        heard.append((number, frame))

    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler) and signal.getsignal(number) is hear:
                signal.signal(number, handler)
        for number, frame in heard:
            handlers[number](number, frame)  # type: ignore[misc, operator]


def once(function: Callable[[], Result]) -> Callable[[], Result]:
    """A function that is run whole, once, by one thread, whatever signals come: its result is kept before
    their handlers are heard, so that a library is never loaded twice. After an error it is run again."""
    results: list[Result] = []

    @functools.wraps(function)
    def result() -> Result:
        if not results:
            with _lock, uninterrupted():
                if not results:
                    results.append(function())
        return results[0]

    result.cache_clear = results.clear  # type: ignore[attr-defined]
    return result


def is_from_handler(error: BaseException) -> bool:
    """Whether a signal's handler raised this. In the blocks where engines run, no other code of the user's
    does: a handler's function is the only one from outside on the way to such an error."""
    trace = error.__traceback__
    while trace is not None:
        package = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in ENGINES and package not in sys.stdlib_module_names:
            return True
        trace = trace.tb_next
    return False


def pass_on(error: BaseException) -> None:
    """Raise what a signal's handler raised, as it is: the first line of a block that translates the errors of
    an engine."""
    if is_from_handler(error):
        raise error


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

    with uninterrupted():  # which starting a thread does not stand: it loses what a handler raises
        for place in range(len(works)):
            threading.Thread(target=run, args=(place,)).start()
    for thread in finished:
        thread.wait()  # and not join(): interrupted, that takes the thread for one that has ended
    if failed:
        raise failed[0]
    return [done[place] for place in range(len(works))]
