"""PyTorch's dtypes that tensors cannot have here: they can be named, compared and printed, as libraries do
with every dtype there is; making a tensor of one is an error."""

from __future__ import annotations

import numpy as np

from tenfold.base.dtypes import DType, Kind, NamedDType

_FLOATS = "float4_e2m1fn_x2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
_BITS = {"bits1x8": "b1x8", "bits2x4": "b2x4", "bits4x2": "b4x2", "bits8": "b8x1"}
_INTS = "quint2x4 quint4x2 " + " ".join([f"{sign}int{width}" for sign in ("", "u") for width in range(1, 8)])


def _named(name: str, kind: Kind, storage: type, short: str = "") -> DType:
    return NamedDType(name, short or name, name, np.dtype(storage), kind)


def _short_float(name: str) -> str:
    return name.replace("float", "f").replace("_", "")


BY_NAME: dict[str, DType] = {
    **{name: _named(name, "float", np.uint8, _short_float(name)) for name in _FLOATS.split()},
    **{name: _named(name, "int", np.uint8) for name in _INTS.split()},
    **{name: _named(name, "int", np.uint8, short) for name, short in _BITS.items()},
    "bits16": _named("bits16", "int", np.uint16, "b16x1"),
    "complex32": _named("complex32", "complex", np.uint32, "c32"),
}
BY_NAME["chalf"] = BY_NAME["complex32"]
NAMES = tuple(BY_NAME)
globals().update(BY_NAME)
