"""`tenfold.cpu`: what a script asks of a device's module, of the CPU. It is always there, and its work is
done in order."""

from __future__ import annotations

import contextlib
import platform
from typing import Any

from tenfold.base.errors import unknown_name

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count",
    "get_capabilities", "is_available", "is_initialized", "set_device",
    "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    return True


is_initialized = is_available


def device_count() -> int:
    return 1


def current_device() -> str:
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Does nothing: reading a value waits for it."""


def current_stream(device: Any = None) -> Any:
    """The one stream that the CPU has: its work is done in order."""
    return Stream()


class Stream:
    """The CPU's order of work, which is the program's."""

    def __init__(self, priority: int = -1):
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: work is done in order."""

    def record_event(self) -> None:
        """Does nothing: reading a value waits for it."""

    def wait_event(self, event: Any) -> None:
        """Does nothing: work is done in order."""


class Event:
    """A point in the CPU's work, which is done when it is reached."""

    def query(self) -> bool:
        return True

    def record(self, stream: Any = None) -> None:
        """Does nothing: reading a value waits for it."""

    def synchronize(self) -> None:
        """Does nothing: reading a value waits for it."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing: work is done in order."""


class StreamContext(contextlib.nullcontext[Any]):
    """A block that changes nothing: the CPU has one stream."""


def stream(stream: Any = None) -> StreamContext:
    """A block that changes nothing: the CPU has one stream."""
    return StreamContext(stream)


def get_capabilities() -> dict[str, Any]:
    """The machine's architecture; XLA finds out its instructions by itself."""
    return {"architecture": platform.machine()}


def empty_cache() -> None:
    """Does nothing: memory goes back when tensors do."""


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.cpu", name, globals())
