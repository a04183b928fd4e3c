"""`tenfold.distributed`, as PyTorch has it where it was built without: a program may ask, and hears no; the
other names can be imported, and say so when they are used."""

from __future__ import annotations

from typing import Any

from tenfold.base.absent import absent_name, reason_of

__all__ = [
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
]  # fmt: skip


def is_available() -> bool:
    """Whether processes can work together: they cannot."""
    return False


def is_backend_available(backend: str) -> bool:
    return False


is_gloo_available = is_initialized = is_mpi_available = is_nccl_available = is_available
is_torchelastic_launched = is_ucc_available = is_xccl_available = is_available


def __getattr__(name: str) -> Any:
    absent = reason_of("torch.distributed")
    if name.startswith("__") or absent is None:
        raise AttributeError(name)
    found = absent_name("torch.distributed", name, absent)
    globals()[name] = found
    return found
