"""`tenfold.accelerator`: the GPU, whichever it is, by PyTorch's newest names."""

from __future__ import annotations

from typing import Any

from tenfold import cuda
from tenfold.base.devices import Device
from tenfold.base.errors import unknown_name
from tenfold.cuda import (
    current_device as current_device_idx,
    current_device as current_device_index,
    current_stream,
    device as device_index,
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info as get_memory_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
    set_device as set_device_idx,
    set_device as set_device_index,
    set_stream,
    synchronize,
)

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "empty_host_cache", "get_memory_info", "is_available",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index",
    "set_stream", "synchronize",
]  # fmt: skip


def current_accelerator(check_available: bool = False) -> Device | None:
    """The kind of accelerator that there is, or None."""
    return Device("cuda") if cuda.is_available() else None


def empty_host_cache() -> None:
    """Does nothing: memory of the host goes back when tensors do."""


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Does nothing: XLA counts what is held, and not how often it was asked for."""


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.accelerator", name, globals())
