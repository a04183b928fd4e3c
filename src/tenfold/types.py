"""`tenfold.types`: what annotations call the kinds of arguments, as in `torch.types`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from tenfold.base.devices import Device as _device
from tenfold.base.dtypes import DType as _dtype
from tenfold.base.size import Size
from tenfold.tensor import Tensor

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_size = Size | list[int] | tuple[int, ...]

Number = int | float | bool
Device = _device | str | int | None
TensorOrTensors = Tensor | Sequence[Tensor]

__all__ = [
    "Device",
    "Number",
    "TensorOrTensors",
    "_bool",
    "_complex",
    "_device",
    "_dtype",
    "_float",
    "_int",
    "_size",
]
