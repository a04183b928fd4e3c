"""`torch.cpu.amp`: mixed precision by its older names, for the CPU."""

from __future__ import annotations

from typing import Any

from tenfold import amp
from tenfold.base.dtypes import DType, bfloat16

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`tenfold.autocast("cpu", …)`."""

    def __init__(self, enabled: bool = True, dtype: DType = bfloat16, cache_enabled: bool = True):
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`tenfold.amp.GradScaler("cpu", …)`."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("cpu", *args, **kwargs)
