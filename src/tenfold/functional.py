"""Functions whose Python signature is not their ATen schema's: creation from Python data, and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import devices, dtypes
from tenfold.devices import Device
from tenfold.dtypes import DType
from tenfold.tensor import Tensor, leaf


def tensor(data: Any, *, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor with a copy of the data: numbers, nested sequences, NumPy arrays."""
    array = np.array(data)
    if dtype is None:
        kind = array.dtype.kind
        dtype = dtypes.get_default_dtype() if kind == "f" and not isinstance(data, np.ndarray) else dtypes.from_numpy(array.dtype)
    return leaf(array.astype(dtype.numpy), Device(device) if device else devices.get_default_device(), dtype)
