"""Tensors in another dtype or on another device: `to`, the methods named after dtypes, and PyTorch's old
names of tensor types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.base import dtypes, package
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType, as_dtype
from tenfold.base.errors import ArgumentError, DTypeError, did_you_mean, located
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.flat.strides import FORMATS
from tenfold.ops.table import find
from tenfold.tensor import Tensor, dispatch, leaf
from tenfold.tensor.interchange import DeviceLike, new_tensor

with on_first_use(__name__):
    from tenfold.tensor import memory_formats


@located
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Convert the tensor to another dtype or device. If nothing changes and `copy` is not set, return the
    tensor itself.

    The forms are to(dtype), to(device), to(device, dtype), and to(other), which takes both from another
    tensor. A move to another device computes the tensor first.
    """
    memory_format = kwargs.pop("memory_format", None)
    names: tuple[str, ...] = ("device", "dtype", "non_blocking", "copy")
    if args and isinstance(args[0], Tensor):
        names = ("other", "non_blocking", "copy")
    elif args and isinstance(args[0], (DType, type)):
        names = ("dtype", "non_blocking", "copy")
    positional = dict(zip(names, args, strict=False))
    known = {"device", "dtype", "other", "non_blocking", "copy"}
    flags = [positional[name] for name in ("non_blocking", "copy") if name in positional]
    if (
        len(args) > len(names)
        or positional.keys() & kwargs.keys()
        or kwargs.keys() - known
        or not all(isinstance(flag, bool) for flag in flags)
    ):
        raise ArgumentError("takes (dtype), (device), (device, dtype) or (other), then non_blocking and copy")
    positional |= kwargs
    like = positional.get("other", self)
    dtype, device = positional.get("dtype"), positional.get("device")
    return convert(
        self,
        like.dtype if dtype is None else as_dtype(dtype),
        like.device if device is None else Device(device).resolved,
        bool(positional.get("copy", False)),
        memory_format,
    )


def convert(
    x: Tensor, dtype: DType, device: Device, copy: bool = False, memory_format: str | None = None
) -> Tensor:
    if memory_format in FORMATS:
        return memory_formats.arranged(convert(x, dtype, device, copy), memory_format)
    dispatch.require_placement("memory_format", memory_format)
    if device.type == "meta" and x.device.type != "meta":
        return dispatch.aten("empty_like")(x, dtype=dtype, device=device)
    if memory_format == "contiguous_format" and not x.is_contiguous():
        copy = True
    if dtype is not x.dtype or (copy and device is x.device):
        x = dispatch.invoke(find("_to_copy"), [x, dtype, None, None, None, False, None], capture())
    return x if device is x.device else leaf(x._host(), device, dtype)


def _to_dtype(name: str, dtype: DType) -> Callable[..., Tensor]:
    def call(self: Tensor, memory_format: Any = None) -> Tensor:
        return convert(self, dtype, self.device, memory_format=memory_format)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"This tensor as {dtype.name}."
    return located(call)


@located
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """This tensor on the CPU."""
    return convert(self, self.dtype, Device("cpu"), memory_format=memory_format)


@located
def cuda(
    self: Tensor, device: DeviceLike | None = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """This tensor on a CUDA device."""
    place = Device("cuda" if device is None else device).resolved
    return convert(self, self.dtype, place, memory_format=memory_format)


@located
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert the tensor to the dtype and the device of another."""
    return convert(self, other.dtype, other.device)


# PyTorch's old names of tensor types: those that are also types, and of newer dtypes the names alone.
TYPES = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "ByteTensor": dtypes.uint8, "CharTensor": dtypes.int8,
    "ShortTensor": dtypes.int16, "IntTensor": dtypes.int32, "LongTensor": dtypes.int64,
    "BoolTensor": dtypes.bool_,
    "ComplexFloatTensor": dtypes.complex64, "ComplexDoubleTensor": dtypes.complex128,
}  # fmt: skip
TYPE_NAMES = {
    **TYPES,
    "UInt16Tensor": dtypes.uint16, "UInt32Tensor": dtypes.uint32, "UInt64Tensor": dtypes.uint64,
    "Float8_e4m3fnTensor": dtypes.float8_e4m3fn, "Float8_e5m2Tensor": dtypes.float8_e5m2,
}  # fmt: skip


@located
def type_(self: Tensor, dtype: DType | str | type | None = None, non_blocking: bool = False) -> Any:
    """Return the old name of the type ("tenfold.FloatTensor"), or convert the tensor to such a type or a
    dtype."""
    if dtype is None:
        name = next(name for name, type_name in TYPE_NAMES.items() if type_name is self.dtype)
        return f"{package.shown}.{'' if self.device.type == 'cpu' else 'cuda.'}{name}"
    if isinstance(dtype, str):
        *place, name = dtype.split(".")
        if name not in TYPE_NAMES:
            raise DTypeError(f"unknown type {dtype!r}", help=did_you_mean(name, TYPE_NAMES))
        return convert(self, TYPE_NAMES[name], Device("cuda" if "cuda" in place else "cpu").resolved)
    if isinstance(getattr(dtype, "dtype", None), DType):  # a type such as tenfold.FloatTensor
        return convert(self, dtype.dtype, Device(dtype.device).resolved)  # type: ignore[union-attr]
    if dtype is Tensor:  # the default type of tensors
        return convert(self, dtypes.get_default_dtype(), Device("cpu").resolved)
    return convert(self, as_dtype(dtype), self.device)


METHODS = {
    "to": to, "cpu": cpu, "cuda": cuda, "type": type_, "type_as": type_as, "new_tensor": new_tensor,
} | {
    name: _to_dtype(name, dtype)
    for name, dtype in {
        "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16,
        "bfloat16": dtypes.bfloat16, "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16,
        "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
        "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
    }.items()
}  # fmt: skip
