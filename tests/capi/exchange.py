"""PyTorch's tensors as libtenfold's and back, in one process: both sides run on the same libtorch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from tenfold.capi.binding import Device, Scalar
from tests.capi.bridge import library

# tn_dtype's numbers, by PyTorch's names.
CODES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "complex32": 8, "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 15, "float8_e5m2": 23,
    "float8_e4m3fn": 24, "float8_e5m2fnuz": 25, "float8_e4m3fnuz": 26, "uint16": 27, "uint32": 28,
    "uint64": 29, "float8_e8m0fnu": 44,
}  # fmt: skip
NAMES = {code: name for name, code in CODES.items()}
LAYOUTS = {torch.strided: 0, torch.sparse_coo: 1, torch.sparse_csr: 2}
FORMATS = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}


def code_of(dtype: Any) -> int:
    return CODES[dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")]


def lend(tensor: torch.Tensor) -> int:
    """A handle over a tensor's own memory, strides and all; the tensor must stay."""
    shape = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.shape)
    strides = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.stride())
    wrap = library().tn_tensor_wrap_data
    code = code_of(tensor.dtype)
    return wrap(tensor.data_ptr() or None, code, shape, tensor.dim(), strides, tensor.dim(), None, None)


def fetch(handle: int) -> torch.Tensor | None:
    """A copy of a handle's tensor; None for an undefined one."""
    lib = library()
    if not lib.tn_tensor_is_defined(handle):
        return None
    sizes = (ctypes.c_int64 * 64)()
    rank = lib.tn_tensor_shape(handle, sizes, 64)
    made = torch.empty(list(sizes[:rank]), dtype=getattr(torch, NAMES[lib.tn_tensor_dtype(handle)]))
    lib.tn_tensor_to_data(handle, made.data_ptr() or None, made.numel() * made.element_size())
    return made


def same(found: Any, golden: Any) -> bool:
    """Equal, NaN to NaN. The same code computed both, though where memory lies changes how sums are split:
    PyTorch's own least squares of a matrix and of its copy differ by some 1e-6 in float32."""
    if isinstance(golden, torch.Tensor):
        if not isinstance(found, torch.Tensor) or found.dtype != golden.dtype or found.shape != golden.shape:
            return False
        golden = golden.detach().resolve_conj().resolve_neg().contiguous()
        if found.numel() == 0 or torch.equal(_bytes(found), _bytes(golden)):
            return True
        if not (found.is_floating_point() or found.is_complex()):
            return False
        wide = torch.complex128 if found.is_complex() else torch.float64
        rtol, atol = (1e-9, 1e-12) if found.dtype in (torch.float64, torch.complex128) else (1e-5, 1e-6)
        return torch.allclose(found.to(wide), golden.to(wide), rtol=rtol, atol=atol, equal_nan=True)
    if golden is None or found is None:
        return found is golden
    if isinstance(golden, (list, tuple)):
        return len(found) == len(golden) and all(same(f, g) for f, g in zip(found, golden, strict=True))
    return type(found) is type(golden) and (found == golden or (found != found and golden != golden))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def array_of(ctype: Any, values: Sequence[Any]) -> Any:
    return (ctype * max(len(values), 1))(*values)


class Frame:
    """The handles and memory of one call, kept until it is over."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.handles: list[int] = []

    def tensor(self, given: torch.Tensor) -> int:
        self.kept.append(given)
        handle = lend(given)
        self.handles.append(handle)
        return handle

    def fresh(self, dtype: torch.dtype, shape: Sequence[int]) -> int:
        """A tensor of zeros of libtenfold's own, which may be resized."""
        zeros = torch.zeros(shape, dtype=dtype)
        sizes = array_of(ctypes.c_int64, zeros.shape)
        code, lib = code_of(dtype), library()
        return self.own(lib.tn_tensor_from_data(zeros.data_ptr() or None, code, sizes, zeros.dim(), None, 0))

    def own(self, handle: int) -> int:
        self.handles.append(handle)
        return handle

    def pointer(self, ctype: Any, value: Any) -> Any:
        made = ctype(value) if not isinstance(value, ctype) else value
        self.kept.append(made)
        return ctypes.byref(made)

    def plain(self, kind: str, value: Any) -> tuple[Any, Any]:
        """The C type and value of what is neither tensor nor text."""
        if kind == "Scalar":
            return Scalar, Scalar.of(value)
        if kind == "Device":
            return Device, Device(0, -1)
        number = {"ScalarType": code_of, "Layout": LAYOUTS.get, "MemoryFormat": FORMATS.get}.get(kind)
        if number is not None:
            return ctypes.c_int32, number(value)
        return {"int": ctypes.c_int64, "float": ctypes.c_double, "bool": ctypes.c_bool}[kind], value

    def close(self) -> None:
        for each in self.handles:
            library().tn_free(each)
