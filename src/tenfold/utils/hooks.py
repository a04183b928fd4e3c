"""`tenfold.utils.hooks`: what a hook is removed by."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.base.hooks import RemovableHandle
from tenfold.tensor import Tensor

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Any) -> Any:
    """The function, marked as one that is not saved with a tensor: no hook is."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Does nothing: hooks are never saved with a tensor."""


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.utils.hooks", name, globals())
