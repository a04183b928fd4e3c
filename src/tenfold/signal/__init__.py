"""`tenfold.signal`: what PyTorch has for signal processing, which is its windows."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.signal import windows

__all__ = ["windows"]


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.signal", name, globals())
