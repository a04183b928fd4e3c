"""`torch.classes`: classes that extensions of PyTorch register in C++. There are none, and asking says so."""

from __future__ import annotations

from typing import Any, NoReturn

from tenfold.base import absent


class _Namespace:
    """The classes of one library, which are not there."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(f"Class {self._name}.{name} is not registered: extensions in C++ are not loaded")


def load_library(path: str) -> Any:
    """Refused: a library of PyTorch's extensions is linked against PyTorch."""
    return absent.absent_name("torch.classes", "load_library", absent.MODULES["torch._C"])(path)


loaded_libraries: set[str] = set()


def __getattr__(name: str) -> _Namespace:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)
