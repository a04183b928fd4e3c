"""`tenfold.distributed`, as PyTorch has it where it was built without: a program may ask, and hears no."""

from __future__ import annotations

from typing import Any

from tenfold.base import unsupported

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether processes can work together: they cannot."""
    return False


def __getattr__(name: str) -> Any:
    raise unsupported.without_counterpart("distributed", name)
