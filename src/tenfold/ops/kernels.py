"""Kernels that are not FlatIR: Python functions on NumPy arrays, and C functions by XLA's FFI.

A lowering calls the first by `flat.python_call` and the second by `flat.custom_call`, each by its name. The
engine finds them here when it compiles or runs a program.
"""

from __future__ import annotations

import ctypes
import json
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base.errors import ArgumentError, EngineError
from tenfold.flat.ir import TensorType

__all__ = ["FOREIGN", "PYTHON_KERNELS", "call_python", "register_foreign", "take_failure"]

# By a name such as "mylib::cube": a function of NumPy arrays and plain values that gives a list of arrays.
PYTHON_KERNELS: dict[str, Callable[..., Sequence[np.ndarray]]] = {}
# By platform and name: the address of a C function, an XLA_FFI_Handler.
FOREIGN: dict[tuple[str, str], int] = {}
# What kernels raised and nobody has reported yet: XLA passes on no more than a text.
_failures: list[EngineError] = []


def call_python(text: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """What XLA calls: the kernel that `text` names, on the inputs and its other arguments."""
    name, _, arguments = bytes(text).decode().partition("#")
    try:
        given, wanted = decoded(arguments, inputs)
        results = PYTHON_KERNELS[name](*given)
        return tuple([_checked(result, *type) for result, type in zip(results, wanted, strict=True)])
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename}:{last.lineno}"
        message = f"the kernel of {name} raised {type(error).__name__} at {place}: {error}"
        _failures.append(EngineError(message, help="the kernel is a Python function: mend it there"))
        raise


def take_failure() -> EngineError | None:
    """The error of a kernel that failed, told once."""
    return _failures.pop() if _failures else None


def encoded(arguments: Sequence[Any], slot: Any, results: Sequence[TensorType]) -> str:
    """The arguments of a call as text: `slot` stands for each tensor. With them go the types of the
    results."""
    types = [[result.dtype.name, *result.shape] for result in results]
    try:
        return json.dumps([_plain(arguments, slot), types])
    except TypeError as error:
        raise ArgumentError(
            f"a Python kernel takes tensors, numbers, strings and lists of them: {error}"
        ) from None


def decoded(text: str, tensors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The arguments that `encoded` wrote, with tensors in their places; and the results' types."""
    remaining = iter(tensors)

    def fill(each: Any) -> Any:
        if isinstance(each, list):
            return [fill(part) for part in each]
        return next(remaining) if each == _SLOT else each

    arguments, types = json.loads(text)
    return [fill(argument) for argument in arguments], [(name, tuple(shape)) for name, *shape in types]


_SLOT = {"tensor": True}


def _plain(each: Any, slot: Any) -> Any:
    if each is slot:
        return _SLOT
    return [_plain(part, slot) for part in each] if isinstance(each, (tuple, list)) else each


def _checked(array: Any, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    made = np.asarray(array)
    if made.dtype.name != dtype or made.shape != shape:
        raise ArgumentError(
            f"it gave {made.dtype.name}{list(made.shape)}, where register_fake says {dtype}{list(shape)}"
        )
    return np.ascontiguousarray(made).reshape(shape)


def register_foreign(name: str, function: Any, platform: str = "cpu") -> None:
    """Make a C function known that handles XLA FFI calls: an address, a ctypes function, or a capsule."""
    FOREIGN[platform, name] = _address(function)


def _address(function: Any) -> int:
    if isinstance(function, int):
        return function
    if type(function).__name__ == "PyCapsule":
        pointer_of, name_of = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
        return pointer_of(function, name_of(function))
    address = ctypes.cast(function, ctypes.c_void_p).value
    if address is None:
        raise ArgumentError("the function's address is NULL")
    return address
