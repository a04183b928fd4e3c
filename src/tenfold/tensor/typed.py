"""`tenfold.FloatTensor` and its like: PyTorch's older types of tensors, one for each dtype. As a function,
one makes a tensor; as a type, it tells whether a tensor is of its dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.base import devices
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError
from tenfold.base.size import Size
from tenfold.base.source import capture
from tenfold.tensor import Tensor, conversions, leaf


class TensorType(type):
    """The type of those types: it answers `isinstance`, and makes plain tensors."""

    dtype: DType
    device: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.device
        )

    def __call__(cls, *args: Any) -> Tensor:
        """`FloatTensor(2, 3)` for zeros of these sizes, `FloatTensor([1, 2])` for that data."""
        place = (Device("cuda") if cls.device == "cuda" else Device("cpu")).resolved
        first = args[0] if args else ()
        if isinstance(first, Tensor):
            if first.dtype is not cls.dtype:
                raise ArgumentError(
                    f"{cls.__name__} takes {cls.dtype.name}, not a {first.dtype.name} tensor",
                    help=f"use .to(tenfold.{cls.dtype.name})",
                ).located(cls.__name__, capture())
            return first
        try:
            sizes = isinstance(first, (int, Size)) and not isinstance(first, bool)
            if len(args) > 1 and not (sizes and isinstance(first, int)):
                raise TypeError(f"sizes one by one, or one sequence, not {len(args)} arguments")
            shape = first if isinstance(first, Size) else args
            array = np.zeros(shape, cls.dtype.numpy) if sizes else np.array(first).astype(cls.dtype.numpy)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"takes sizes or numbers: {error}", help="use tenfold.tensor").located(
                cls.__name__, capture()
            ) from None
        return leaf(array, place, cls.dtype)

    def __repr__(cls) -> str:
        return f"<class 'tenfold.{'cuda.' * (cls.device == 'cuda')}{cls.__name__}'>"


def _types(device: str) -> dict[str, TensorType]:
    return {
        name: TensorType(name, (), {"dtype": dtype, "device": device, "__doc__": f"Tensors of {dtype.name}."})
        for name, dtype in conversions.TYPES.items()
    }


TYPES = _types(devices.TYPES[0])
CUDA_TYPES = _types(devices.TYPES[1])
globals().update(TYPES)
