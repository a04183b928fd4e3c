"""`tenfold.profiler`: where a program's time and memory go, by the names of `torch.profiler`."""

from __future__ import annotations

from typing import Any

from tenfold.base.absent import AbsentModule
from tenfold.profiler.session import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    tensorboard_trace_handler,
)
from tenfold.profiler.spans import record_function

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule",
    "tensorboard_trace_handler",
]  # fmt: skip

_absent = AbsentModule.of("torch.profiler")


def kineto_available() -> bool:
    """False: that is PyTorch's own profiler."""
    return False


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
