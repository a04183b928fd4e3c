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
    """Pads a sequence with its mirror image, without repeating the border

    Input (N, C, L) or (C, L), output (N, C, Lout): each extent grows by its two paddings.

        nn.ReflectionPad1d(1)(tn.ones(2, 3, 8)).shape  # [2, 3, 10]
    """

    _rank, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pads an image with its mirror image, without repeating the border

    Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout): each extent grows by its two paddings.

        nn.ReflectionPad2d(1)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 10, 10]
    """

    _rank, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Pads a volume with its mirror image, without repeating the border

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout): each extent grows by its two
    paddings.

        nn.ReflectionPad3d(1)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 10, 10, 10]
    """

    _rank, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pads a sequence with copies of its border

    Input (N, C, L) or (C, L), output (N, C, Lout): each extent grows by its two paddings.

        nn.ReplicationPad1d(1)(tn.ones(2, 3, 8)).shape  # [2, 3, 10]
    """

    _rank, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pads an image with copies of its border

    Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout): each extent grows by its two paddings.

        nn.ReplicationPad2d(1)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 10, 10]
    """

    _rank, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Pads a volume with copies of its border

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout): each extent grows by its two
    paddings.

        nn.ReplicationPad3d(1)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 10, 10, 10]
    """

    _rank, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Pads a sequence with its opposite side

    Input (N, C, L) or (C, L), output (N, C, Lout): each extent grows by its two paddings.

        nn.CircularPad1d(1)(tn.ones(2, 3, 8)).shape  # [2, 3, 10]
    """

    _rank, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """Pads an image with its opposite side

    Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout): each extent grows by its two paddings.

        nn.CircularPad2d(1)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 10, 10]
    """

    _rank, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """Pads a volume with its opposite side

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout): each extent grows by its two
    paddings.

        nn.CircularPad3d(1)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 10, 10, 10]
    """

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
    """Pads a sequence with one value

    Input (N, C, L) or (C, L), output (N, C, Lout): each extent grows by its two paddings.

        nn.ConstantPad1d(1, 5.0)(tn.ones(2, 3, 8)).shape  # [2, 3, 10]
    """

    _rank = 1


class ConstantPad2d(_ConstantPad):
    """Pads an image with one value

    nn.ConstantPad2d((1, 1, 0, 0), 3.5)(tn.ones(1, 2, 2)).shape  # [1, 2, 4]
    """

    _rank = 2


class ConstantPad3d(_ConstantPad):
    """Pads a volume with one value

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout): each extent grows by its two
    paddings.

        nn.ConstantPad3d(1, 5.0)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 10, 10, 10]
    """

    _rank = 3


class ZeroPad1d(ConstantPad1d):
    """Pads a sequence with zeros

    Input (N, C, L) or (C, L), output (N, C, Lout): each extent grows by its two paddings.

        nn.ZeroPad1d(1)(tn.ones(2, 3, 8)).shape  # [2, 3, 10]
    """

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads an image with zeros

    Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout): each extent grows by its two paddings.

        nn.ZeroPad2d(1)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 10, 10]
    """

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads a volume with zeros

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout): each extent grows by its two
    paddings.

        nn.ZeroPad3d(1)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 10, 10, 10]
    """

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
