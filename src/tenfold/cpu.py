"""`tenfold.cpu`: what a script asks of a device's module, of the CPU. It is always there, and its work is
done in order."""

from __future__ import annotations

import contextlib
from typing import Any

from tenfold.base.errors import unknown_name

__all__ = [
    "current_device", "current_stream", "device_count", "is_available", "is_initialized", "set_device",
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
    """Nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Nothing: who reads a value waits for it."""


def current_stream(device: Any = None) -> Any:
    """None: the CPU has no streams."""
    return None


def stream(stream: Any = None) -> Any:
    """A block as any other."""
    return contextlib.nullcontext(stream)


def empty_cache() -> None:
    """Nothing: memory goes back when tensors do."""


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.cpu", name, globals())
