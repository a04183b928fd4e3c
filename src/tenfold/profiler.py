"""`tenfold.profiler`: marks that code carries for a profiler. They mark nothing here: Tenfold has no
profiler of its own yet, so asking for a profile is refused."""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from tenfold.base.absent import AbsentModule

__all__ = ["ProfilerAction", "ProfilerActivity", "record_function", "schedule"]

_absent = AbsentModule.of("torch.profiler")


class ProfilerActivity(enum.Enum):
    """What a profiler would watch."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What a profiler would do at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class record_function(ContextDecorator):
    """A named part of a program, for who reads the code; the names of ops are in `tenfold.show`."""

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


def kineto_available() -> bool:
    """False: that is PyTorch's own profiler."""
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """What to do at each step: wait, warm up, record; over again `repeat` times, or always."""
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat > 0 and step >= repeat * cycle):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
