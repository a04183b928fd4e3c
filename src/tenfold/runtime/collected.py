"""What a recorded function does to the gradients of leaves: which it expects, which it makes and clears."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.engines import xla
from tenfold.flat.ir import TensorType
from tenfold.runtime.packing import Pending
from tenfold.trace.graph import Origin, Value

ANY = object()  # a gradient, whichever


class Gradients:
    """What a recorded function does to the `grad` of leaves, each an Origin or the place of an argument."""

    def __init__(self) -> None:
        self.expected: list[tuple[Any, Any]] = []  # a Tensor, None, or ANY tensor
        self.made: list[Any] = []
        self.cleared: list[Any] = []


class Cleared:
    """A gradient that a function throws away, as what lends its memory to the one that it makes. A gradient
    that somebody else may still look at does not; then, as for want of one, there is other memory."""

    __slots__ = ("_device", "_origin", "_type")

    def __init__(self, origin: Origin, type: TensorType, device: Device):
        self._origin = origin
        self._type = type
        self._device = device

    def current(self) -> Value:
        gradient = self._origin.collected
        # References: the leaf's, the name here and the call's.
        if gradient is not None and gradient._alias is None and sys.getrefcount(gradient) <= 3:
            value = gradient._value
            known = value.type is self._type and value.device is self._device and value.origin is None
            if known and value.buffer is not None and type(value.buffer) not in (np.ndarray, Pending):
                return value
        zeros = np.zeros(self._type.shape, self._type.dtype.numpy)
        return Value(self._type, self._device, None, 0, xla.put(zeros, self._device))


def origin_of(owner: Any, arguments: Sequence[Any]) -> Origin:
    return arguments[owner]._leaf if type(owner) is int else owner
