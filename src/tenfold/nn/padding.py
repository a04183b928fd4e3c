"""Padding: borders added to the last one, two or three dimensions. `padding` is one width for all sides, or
(left, right, top, bottom, front, back), as many of them as there are sides."""

from __future__ import annotations

from typing import Any

from tenfold.nn import functional as F
from tenfold.nn.module import Module, in_layer
from tenfold.nn.sizes import each_dimension
from tenfold.tensor import Tensor


class _Pad(Module):
    """A border that is made of the input's own elements."""

    _rank: int
    _mode: str

    @in_layer
    def __init__(self, padding: Any):
        super().__init__()
        self.padding = each_dimension(padding, 2 * self._rank)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_Pad):
    """A sequence continued by its mirror image, the last element not repeated."""

    _rank, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """An image continued by its mirror image, the last element not repeated."""

    _rank, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """A volume continued by its mirror image, the last element not repeated."""

    _rank, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """A sequence continued by its last element."""

    _rank, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """An image continued by its last elements."""

    _rank, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """A volume continued by its last elements."""

    _rank, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """A sequence continued from its other end."""

    _rank, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """An image continued from its other side."""

    _rank, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """A volume continued from its other side."""

    _rank, _mode = 3, "circular"


class _ConstantPad(_Pad):
    """A border of one value."""

    _mode = "constant"

    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A sequence between borders of one value."""

    _rank = 1


class ConstantPad2d(_ConstantPad):
    """An image within a border of one value

    nn.ConstantPad2d((1, 1, 0, 0), 3.5)(tn.ones(1, 2, 2)).shape  # [1, 2, 4]
    """

    _rank = 2


class ConstantPad3d(_ConstantPad):
    """A volume within a border of one value."""

    _rank = 3


class ZeroPad1d(ConstantPad1d):
    """A sequence between zeros."""

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """An image within zeros."""

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """A volume within zeros."""

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
