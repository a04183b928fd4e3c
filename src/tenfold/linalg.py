"""`tenfold.linalg`: the functions of `torch.linalg`, by the same names. The op table fills it."""

from typing import Any

from tenfold.base import unsupported
from tenfold.base.errors import LinAlgError, unknown_name

__all__ = ["LinAlgError"]


def __getattr__(name: str) -> Any:
    refused = unsupported.function("torch.linalg", name)
    if refused is not None:
        return refused
    raise unknown_name("tenfold.linalg", name, globals())
