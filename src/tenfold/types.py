"""`tenfold.types`: what annotations call the kinds of arguments, as in `torch.types`."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO

from tenfold.base.devices import Device as _device
from tenfold.base.dtypes import DType as _dtype
from tenfold.base.size import Size
from tenfold.tensor import Tensor
from tenfold.tensor.methods import UntypedStorage

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_size = Size | list[int] | tuple[int, ...]

Number = int | float | bool
Device = _device | str | int | None
TensorOrTensors = Tensor | Sequence[Tensor]
FileLike = str | os.PathLike[str] | IO[bytes]
Storage = UntypedStorage

__all__ = [
    "Device",
    "FileLike",
    "Number",
    "Storage",
    "TensorOrTensors",
    "_bool",
    "_complex",
    "_device",
    "_dtype",
    "_float",
    "_int",
    "_size",
]
