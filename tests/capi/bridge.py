"""What the tests of libtenfold share: the library by ctypes, and tensors between NumPy and it."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ml_dtypes  # noqa: F401  # NumPy knows bfloat16 by it
import numpy as np

from tenfold.capi.binding import Library, Scalar, handles, numbers
from tenfold.capi.build import Built, build

DTYPES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 15,
}  # fmt: skip
NAMES = {code: name for name, code in DTYPES.items()}


@functools.cache
def built() -> Built:
    return build()


@functools.cache
def library() -> Library:
    return Library(str(built().library))


class Handle(int):
    """A tensor's handle, told apart from a number."""


class Bridge:
    """The library, and the handles that a test made: `close` frees them."""

    def __init__(self) -> None:
        self.lib = library()
        self.made: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lib, name)

    def keep(self, handle: int) -> Handle:
        """Have a tensor freed at the end of the test."""
        self.made.append(handle)
        return Handle(handle)

    def tensor(self, values: Any, dtype: str = "float32", requires_grad: bool = False) -> Handle:
        array = np.ascontiguousarray(np.asarray(values).astype(dtype))
        shape = numbers(np.asarray(values).shape)
        made = self.lib.tn_tensor_from_data(array.ctypes.data, DTYPES[dtype], *shape, None, 0)
        if requires_grad:
            self.lib.tn_set_requires_grad(made, True)
        return self.keep(made)

    def array(self, handle: int) -> np.ndarray:
        shape = (ctypes.c_int64 * 32)()
        rank = self.lib.tn_tensor_shape(handle, shape, 32)
        array = np.empty(tuple(shape[:rank]), NAMES[self.lib.tn_tensor_dtype(handle)])
        self.lib.tn_tensor_to_data(handle, array.ctypes.data, array.nbytes)
        return array

    def call(self, op: str, *arguments: Any) -> Handle:
        """An operator for its first result. A list is one of tensors, of flags or of numbers."""
        stack = self.lib.tn_stack_new()
        try:
            for each in arguments:
                self.push(stack, each)
            self.lib.tn_call(f"aten::{op}".encode(), stack)
            return self.keep(self.lib.tn_stack_tensor_at(stack, 0))
        finally:
            self.lib.tn_stack_free(stack)

    def typed(self, name: str, *arguments: Any) -> int | None:
        """What a typed function returns: a handle, or a status. An error is this thread's."""
        function = self.lib.library[name]
        function.restype = ctypes.c_void_p
        found: int | None = function(
            *(ctypes.c_void_p(each) if isinstance(each, Handle) else each for each in arguments)
        )
        return found

    def push(self, stack: int, argument: Any) -> None:
        if argument is None:
            self.lib.tn_stack_push_none(stack)
        elif isinstance(argument, Handle):
            self.lib.tn_stack_push_tensor(stack, argument)
        elif isinstance(argument, str):
            self.lib.tn_stack_push_string(stack, argument.encode())
        elif isinstance(argument, list) and argument and isinstance(argument[0], bool):
            flags = self.lib.tn_value_bool_list((ctypes.c_bool * len(argument))(*argument), len(argument))
            self.lib.tn_stack_push(stack, flags)
            self.lib.tn_value_free(flags)
        elif isinstance(argument, list) and argument and isinstance(argument[0], Handle):
            self.lib.tn_stack_push_tensors(stack, *handles(argument))
        elif isinstance(argument, list):
            self.lib.tn_stack_push_ints(stack, *numbers(argument))
        else:
            self.lib.tn_stack_push_scalar(stack, Scalar.of(argument))

    def close(self) -> None:
        for each in self.made:
            self.lib.tn_free(each)
        self.made.clear()


@contextmanager
def nothing_left(bridge: Bridge) -> Iterator[None]:
    """Whatever the block makes is freed by its end."""
    before = bridge.tn_live_tensors(), bridge.tn_live_objects()
    yield
    bridge.close()
    assert (bridge.tn_live_tensors(), bridge.tn_live_objects()) == before


__all__ = ["DTYPES", "Bridge", "Handle", "built", "handles", "library", "nothing_left", "numbers"]
