"""The safetensors format: a flat dict of tensors, and a few strings about them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any

import numpy as np

from tenfold.base import dtypes, files
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, FormatError, MissingEngine
from tenfold.base.package import install_command
from tenfold.serialize.storages import Places, hosts
from tenfold.tensor import Tensor, leaf

_CODES = {
    "BOOL": dtypes.bool_,
    "U8": dtypes.uint8,
    "U16": dtypes.uint16,
    "U32": dtypes.uint32,
    "U64": dtypes.uint64,
    "I8": dtypes.int8,
    "I16": dtypes.int16,
    "I32": dtypes.int32,
    "I64": dtypes.int64,
    "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E5M2": dtypes.float8_e5m2,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
    "C64": dtypes.complex64,
}


class Tensors(dict[str, Tensor]):
    """Tensors by name, and the strings that stood beside them in their file."""

    metadata: dict[str, str]

    def __init__(self, tensors: Any = (), metadata: dict[str, str] | None = None):
        super().__init__(tensors)
        self.metadata = dict(metadata or {})


def is_path(path: str) -> bool:
    return path.endswith(".safetensors")


class Contents:
    """A dict of tensors, checked and computed, ready to be written."""

    def __init__(self, obj: Any):
        self.package = _package()
        if not isinstance(obj, dict):
            raise ArgumentError(
                f"safetensors holds a dict of tensors, not a {type(obj).__name__}", help=_HELP
            )
        for name, each in obj.items():
            if not isinstance(name, str):
                raise ArgumentError(f"in safetensors the names are strings, and {name!r} is not", help=_HELP)
            if not isinstance(each, Tensor):
                raise ArgumentError(
                    f"safetensors holds tensors alone, and {name!r} is a {type(each).__name__}", help=_HELP
                )
            if each.dtype not in _CODES.values():
                raise DTypeError(f"safetensors has no {each.dtype.name}, which {name!r} is of", help=_HELP)
        self.arrays = dict(zip(obj, hosts(list(obj.values()))))
        self.metadata = getattr(obj, "metadata", None) or None

    def write(self, file: IO[bytes]) -> None:
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        described = {
            name: self.package.TensorSpec(
                dtype=host.dtype.name,
                shape=self.arrays[name].shape,
                data_ptr=host.ctypes.data,
                data_len=host.nbytes,
            )
            for name, host in arrays.items()
        }
        try:
            file.write(self.package.serialize(described, metadata=self.metadata))
        except (self.package.SafetensorError, TypeError) as error:
            raise ArgumentError(f"safetensors refuses this: {error}", help=_HELP) from None


def read(file: IO[bytes], places: Places) -> Tensors:
    import json  # takes a while to load, and is needed for this format alone

    package = _package()
    contents = file.read()
    try:
        found = package.deserialize(contents)
        header = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
    except (package.SafetensorError, ValueError, RecursionError) as error:
        raise FormatError(
            f"this is no whole safetensors file: {error}",
            help="it was cut short or changed after it was saved: save or copy it again",
        ) from None
    device = places.of("cpu")
    tensors = {name: _tensor(name, each) for name, each in found}
    return Tensors(
        {name: leaf(host, device, dtype) for name, (host, dtype) in tensors.items()},
        header.get("__metadata__"),
    )


def mapped(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file, which are read when they are looked at. This needs no package."""
    import json

    try:
        with files.opened(path) as file:
            data = np.memmap(file, np.uint8, "r")
        size = int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8 : 8 + size].tobytes())
        arrays = {}
        for name, each in header.items():
            if name != "__metadata__":
                start, end = each["data_offsets"]
                part = {**each, "data": data[8 + size + start : 8 + size + end]}
                arrays[name] = _tensor(name, part)[0]
        return arrays
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{path} is no whole safetensors file: {error}") from None


def _tensor(name: str, each: dict[str, Any]) -> tuple[np.ndarray, DType]:
    dtype, shape = _CODES.get(each["dtype"]), tuple(each["shape"])
    if dtype is None:
        raise FormatError(f"tensor {name!r} is of a dtype that Tenfold does not have: {each['dtype']}")
    data = each["data"]
    flat = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    if flat.nbytes != math.prod(shape) * dtype.itemsize:
        raise FormatError(
            f"tensor {name!r} has {flat.nbytes} bytes, which are not {dtype.short}{list(shape)}"
        )
    try:
        host = (flat != 0) if dtype is dtypes.bool_ else flat.view(dtype.numpy)
        return host.reshape(shape), dtype
    except ValueError:
        raise FormatError(f"tensor {name!r} has a shape that no array has: {list(shape)}") from None


def _package() -> Any:
    try:
        import safetensors
    except ImportError as error:
        raise MissingEngine(
            f"safetensors files need the safetensors package, which cannot be imported ({error})",
            help=install_command("safetensors"),
        ) from None
    return safetensors


_HELP = "save nested or other data under a path that ends in .pt"
