"""`torch.utils._python_dispatch`: whether a tensor is made of others that its class holds. None is."""

from __future__ import annotations

from typing import Any

from tenfold.base.absent import AbsentModule

__all__ = ["is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type"]

_absent = AbsentModule.of("torch.utils._python_dispatch")


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """False: a tensor holds its own data."""
    return False


is_traceable_wrapper_subclass_type = is_traceable_wrapper_subclass


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    return False


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
