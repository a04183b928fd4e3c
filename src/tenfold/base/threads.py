"""State of which each thread has its own, and work that goes on in another thread.

A thread that hands its work to another one and waits for it must find there what holds in itself: its default
device, autocast, whether gradients are followed.
"""

from __future__ import annotations

import contextvars
import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar

State = TypeVar("State", bound=threading.local)
Result = TypeVar("Result")

_states: list[threading.local] = []


def handed_on(state: State) -> State:
    """Register the state of a module, as it is made: `in_another_thread` hands it on."""
    _states.append(state)
    return state


def in_another_thread(work: Callable[[], Result], name: str, stack_bytes: int = 0) -> Result:
    """Run `work` in a thread that has a stack of its own and this thread's state, which it may change. An
    interruption from the keyboard reaches it there."""
    outcome: list[tuple[bool, Any]] = []
    done = threading.Event()
    around = contextvars.copy_context()
    held = [(state, vars(state)) for state in _states]

    def run() -> None:
        own = [(vars(state), given) for state, given in held]
        for there, given in own:
            there.update(given)
        try:
            outcome.append((True, around.run(work)))
        except BaseException as error:
            outcome.append((False, error))
        finally:
            for there, given in own:
                given.update(there)
            done.set()

    size = threading.stack_size(stack_bytes) if stack_bytes else None
    try:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
    finally:
        if size is not None:
            threading.stack_size(size)
    while not done.is_set():  # a join that is interrupted takes the thread for ended
        try:
            done.wait()
        except KeyboardInterrupt:
            interruption = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), interruption)
    if not outcome:
        raise KeyboardInterrupt
    succeeded, value = outcome[0]
    if succeeded:
        return value
    raise value
