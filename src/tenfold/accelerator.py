"""`tenfold.accelerator`: the GPU, whichever it is, by PyTorch's newest names."""

from __future__ import annotations

from typing import Any

from tenfold import cuda
from tenfold.base.devices import Device
from tenfold.base.errors import unknown_name
from tenfold.cuda import current_device as current_device_index
from tenfold.cuda import (
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    memory_allocated,
    memory_stats,
    reset_peak_memory_stats,
    synchronize,
)
from tenfold.cuda import mem_get_info as get_memory_info
from tenfold.cuda import set_device as set_device_index

__all__ = [
    "current_accelerator", "current_device_index", "device_count", "empty_cache", "get_memory_info",
    "is_available", "max_memory_allocated", "memory_allocated", "memory_stats", "reset_peak_memory_stats",
    "set_device_index", "synchronize",
]  # fmt: skip


def current_accelerator(check_available: bool = False) -> Device | None:
    """The kind of accelerator that there is, or None."""
    return Device("cuda") if cuda.is_available() else None


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.accelerator", name, globals())
