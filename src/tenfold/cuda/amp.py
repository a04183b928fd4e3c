"""`tenfold.cuda.amp`: mixed precision by its older names, for GPUs."""

from __future__ import annotations

from typing import Any

from tenfold import amp
from tenfold.base.dtypes import DType, float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`tenfold.autocast("cuda", …)`."""

    def __init__(self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True):
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`tenfold.amp.GradScaler("cuda", …)`."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("cuda", *args, **kwargs)


def custom_fwd(fwd: Any = None, *, cast_inputs: DType | None = None) -> Any:
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    return amp.custom_bwd(bwd, device_type="cuda")
