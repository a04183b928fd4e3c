"""Plain ops that make or convert tensors by way of the frontend: from numbers, to a dtype or device."""

from __future__ import annotations

from typing import Any

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import BY_NAME, DType
from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.base.layouts import strided
from tenfold.mlir.torch_types import SCALAR_TYPES
from tenfold.ops.plain import plain
from tenfold.tensor import Tensor
from tenfold.tensor.conversions import convert
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import tensor
from tenfold.tensor.methods import empty_strided, new_empty_strided, resize_

_OPTIONS = "*, ScalarType? dtype=None, Device? device=None, bool requires_grad=False"


@plain(
    f"tensor(t[] data, {_OPTIONS}) -> Tensor",
    f"tensor.bool(bool t, {_OPTIONS}) -> Tensor",
    f"tensor.float(float t, {_OPTIONS}) -> Tensor",
    f"tensor.int(int t, {_OPTIONS}) -> Tensor",
)
def from_data(data: Any, dtype: DType | None, device: Any, requires_grad: bool) -> Tensor:
    return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


@plain("prim::NumToTensor.Scalar(Scalar a) -> Tensor")
def number_to_tensor(number: Any) -> Tensor:
    """A float is kept whole: it becomes a float64."""
    return tensor(number, dtype=dtypes.float64 if isinstance(number, float) else None)


@plain("type_as(Tensor self, Tensor other) -> Tensor")
def type_as(x: Tensor, other: Tensor) -> Tensor:
    return convert(x, other.dtype, other.device)


@plain(
    "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)"
)
def to_device(
    x: Tensor, device: Any, dtype: DType, non_blocking: bool, copy: bool, memory_format: Any
) -> Tensor:
    return x.to(device=device, dtype=dtype, copy=copy, memory_format=memory_format)


@plain(
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)"
)
def to_dtype(x: Tensor, dtype: DType, non_blocking: bool, copy: bool, memory_format: Any) -> Tensor:
    return x.to(dtype=dtype, copy=copy, memory_format=memory_format)


@plain(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) "
    "-> Tensor(a)"
)
def to_layout(
    x: Tensor,
    dtype: DType | None,
    layout: Any,
    device: Any,
    pin_memory: bool | None,
    non_blocking: bool,
    copy: bool,
    memory_format: Any,
) -> Tensor:
    if layout not in (None, strided):
        raise ArgumentError("tensors are strided", help="leave layout out")
    return x.to(dtype=dtype, device=device, copy=copy, memory_format=memory_format)


@plain(
    "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)"
)
def to_other(x: Tensor, other: Tensor, non_blocking: bool, copy: bool, memory_format: Any) -> Tensor:
    return x.to(other, copy=copy, memory_format=memory_format)


@plain(
    "to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, "
    "bool copy=False) -> Tensor(b|a)"
)
def to_place(x: Tensor, device: Any, dtype: int | None, non_blocking: bool, copy: bool) -> Tensor:
    return x.to(device=device, dtype=None if dtype is None else _numbered(dtype), copy=copy)


def _numbered(number: int) -> DType:
    """The dtype of a number of PyTorch's ScalarType."""
    name = next((name for name, scalar_type in SCALAR_TYPES.items() if scalar_type == number), None)
    if name is None:
        raise ArgumentError(f"there is no dtype with number {number}")
    return BY_NAME[name]


@plain("cpu(Tensor(a) self) -> Tensor(b|a)")
def cpu(x: Tensor) -> Tensor:
    return convert(x, x.dtype, Device("cpu"))


@plain("cuda(Tensor(a) self) -> Tensor(b|a)")
def cuda(x: Tensor) -> Tensor:
    return convert(x, x.dtype, Device("cuda").resolved)


@plain("prim::dtype(Tensor a) -> int")
def dtype_number(x: Tensor) -> int:
    """The number of its dtype in PyTorch's ScalarType."""
    return SCALAR_TYPES[x.dtype.name]


@plain("prim::layout(Tensor a) -> Layout")
def layout(x: Tensor) -> str:
    return x.layout


# What writes, or looks at memory by strides


@plain(
    "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
)
def bernoulli_(x: Tensor, p: Any, generator: Any) -> Tensor:
    return x.bernoulli_(p, generator=generator)


_SLOPES = (
    "Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None"
)


@plain(f"rrelu_with_noise(Tensor self, {_SLOPES}) -> Tensor")
def rrelu_with_noise(
    x: Tensor, noise: Tensor, lower: float, upper: float, training: bool, generator: Any
) -> Tensor:
    """`rrelu`, whose slopes are written into `noise`."""
    result, slopes = aten("rrelu_with_noise_functional")(x, noise, lower, upper, training, generator)
    if training:
        noise.copy_(slopes.detach())
    return result


@plain(f"rrelu_with_noise_(Tensor(a!) self, {_SLOPES}) -> Tensor(a!)")
def rrelu_with_noise_(
    x: Tensor, noise: Tensor, lower: float, upper: float, training: bool, generator: Any
) -> Tensor:
    return x.copy_(rrelu_with_noise(x, noise, lower, upper, training, generator))


@plain("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)")
def reshape_alias(x: Tensor, size: Any, stride: Any) -> Tensor:
    return x.as_strided(tuple(size), tuple(stride))


_PLACE = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


@plain(f"empty_strided(SymInt[] size, SymInt[] stride, *, {_PLACE}) -> Tensor")
def strided_zeros(size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return empty_strided(size, stride, dtype=dtype, layout=layout, device=device)


@plain(f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {_PLACE}) -> Tensor")
def strided_zeros_like(
    x: Tensor, size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    return new_empty_strided(x, size, stride, dtype=dtype, layout=layout, device=device)


@plain("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
def resize_in_place(x: Tensor, size: Any, memory_format: Any) -> Tensor:
    return resize_(x, *size, memory_format=memory_format)


@plain("sym_size.int(Tensor self, int dim) -> SymInt")
def size_along(x: Tensor, dim: int) -> int:
    return x.size(dim)


@plain("_local_scalar_dense(Tensor self) -> Scalar")
def only_element(x: Tensor) -> Any:
    return x.item()


@plain("_pin_memory(Tensor self, Device? device=None) -> Tensor")
def pinned(x: Tensor, device: Any) -> Tensor:
    return x.pin_memory()


@plain("detach_(Tensor(a!) self) -> Tensor(a!)")
def detach_in_place(x: Tensor) -> Tensor:
    return x.detach_()


@plain("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)")
def fill_diagonal_in_place(x: Tensor, fill_value: Any, wrap: bool) -> Tensor:
    return x.fill_diagonal_(fill_value, wrap)


@plain("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def sparse_addmm(x: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Tensor:
    return aten("addmm")(x, mat1, mat2, beta=beta, alpha=alpha)


@plain("_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)")
def sparse_reduced_product(x: Tensor, other: Tensor, reduce: str) -> Any:
    raise UnsupportedError(
        "products of sparse matrices that reduce otherwise than by a sum are not there",
        help="gather the rows and reduce them with scatter_reduce",
    )
