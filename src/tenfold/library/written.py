"""The tensors that a kernel of `custom_op` is given to write to."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.overriding import disabled
from tenfold.tensor.subclasses import made
from tenfold.trace.graph import Value

__all__ = ["written_argument"]


def written_argument(array: np.ndarray) -> Tensor:
    """A tensor whose memory is this array: `.numpy()` is the array itself, and may be written to."""
    tensor = made(_Written, leaf(array.copy(), Device("cpu").resolved).current())
    tensor._array, tensor._seen = array, tensor._value
    return tensor


class _Written(Tensor):
    """A tensor that is one with an array. Its value is taken from the array whenever it is read; what tensor
    operations write goes to the array."""

    __torch_function__ = disabled
    _array: np.ndarray
    _seen: Value  # the value that the array held when both were last alike

    def current(self) -> Value:
        value, seen = super().current(), self._seen
        self._seen = value  # first: evaluation asks for the values of what is written
        if value is not seen:  # written by a tensor operation
            evaluate.evaluate([value])
            np.copyto(self._array, evaluate.host_array(value))
        elif value.buffer is not None and not np.array_equal(evaluate.host_array(value), self._array):
            super().assign(leaf(self._array.copy(), self.device).current())
            self._seen = self._value
        return self._value

    def assign(self, value: Value, uniform: bool = False) -> None:
        super().assign(value, uniform)
        self.current()

    def numpy(self, *, force: bool = False) -> Any:
        self.current()
        return self._array
