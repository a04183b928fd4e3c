"""What is asked of a tensor: its sizes, its dtype, its device; and its only element, which evaluates it."""

from __future__ import annotations

from typing import Any

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from tenfold.ops.plain.table import plain

plain("dim(Tensor self) -> int")(lambda x: x.ndim)
plain("numel(Tensor self) -> int")(lambda x: x.numel())
plain("size(Tensor self) -> int[]")(lambda x: list(x.shape))
plain("size.int(Tensor self, int dim) -> int")(lambda x, dim: x.size(dim))
plain("stride(Tensor self) -> int[]")(lambda x: list(x.stride()))
plain("stride.int(Tensor self, int dim) -> int")(lambda x, dim: x.stride(dim))
plain("len.Tensor(Tensor t) -> int")(len)
plain("is_floating_point(Tensor self) -> bool")(lambda x: x.is_floating_point())
plain("is_complex(Tensor self) -> bool")(lambda x: x.is_complex())
plain("item(Tensor self) -> Scalar", "ScalarImplicit(Tensor a) -> Scalar")(lambda x: x.item())
plain("Bool.Tensor(Tensor a) -> bool")(bool)
plain("Int.Tensor(Tensor a) -> int", "IntImplicit(Tensor a) -> int")(int)
plain("Float.Tensor(Tensor a) -> float", "FloatImplicit(Tensor a) -> float")(float)
plain("device.with_index(str type, int index) -> Device")(Device)
plain("prim::device(Tensor a) -> Device")(lambda x: x.device)


@plain(
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, "
    "*, Device? device=None, Layout? layout=None) -> ()"
)
def assert_metadata(
    x: Any, size: Any, stride: Any, dtype: DType | None, device: Device | None, layout: str | None
) -> None:
    """Refuse a tensor that is not as promised; what is None may be anything."""
    if size is not None and tuple(size) != tuple(x.shape):
        raise ShapeError(f"the tensor has shape {tuple(x.shape)}, not {tuple(size)}")
    if stride is not None and tuple(stride) != tuple(x.stride()):
        raise ShapeError(f"the tensor has strides {tuple(x.stride())}, not {tuple(stride)}")
    if dtype is not None and dtype is not x.dtype:
        raise DTypeError(f"the tensor is {x.dtype.name}, not {dtype.name}")
    if device is not None and Device(device).resolved is not x.device.resolved:
        raise DeviceError(f"the tensor is on {x.device}, not on {device}")
    if layout not in (None, "strided"):
        raise ArgumentError(f"the tensor is strided, not {layout}")
