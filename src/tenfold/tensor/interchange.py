"""Tensors from Python data, and memory shared with other libraries: NumPy, buffers, DLPack."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Mapping, Sequence, Set, Sized
from typing import Any

import numpy as np

from tenfold.base import devices, dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType, as_dtype
from tenfold.base.errors import (
    ArgumentError,
    DTypeError,
    NumberOutOfRange,
    ShapeError,
    TenfoldError,
    UnsupportedError,
    located,
)
from tenfold.base.source import capture
from tenfold.engines import xla
from tenfold.flat.ir import TensorType
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.overriding import DisableTorchFunctionSubclass
from tenfold.tensor.views import borrowing
from tenfold.trace.graph import Value

DeviceLike = Device | str | int


@located
def tensor(
    data: Any,
    *,
    dtype: DType | type | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor from a copy of data: a number, nested sequences of numbers, a NumPy array or a tensor."""
    if type(data) is np.ndarray and dtype is None:
        return _asking(leaf(data.copy(), _place(device)), requires_grad)
    if isinstance(data, Tensor):
        with DisableTorchFunctionSubclass():  # of whatever class, the copy is a plain tensor
            return data.detach().to(dtype=dtype, device=device, copy=True).requires_grad_(requires_grad)
    if hasattr(data, "__dlpack__") and not isinstance(data, (np.ndarray, np.generic)):
        data = _imported(data)
        if data.device.type != "cpu":
            return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        data = data._host()
    array = as_array(data, as_dtype(dtype) if dtype is not None else None)
    if isinstance(data, np.ndarray) and np.may_share_memory(array, data):
        array = array.copy()
    return _asking(leaf(array, _place(device)), requires_grad)


def _asking(tensor: Tensor, requires_grad: bool) -> Tensor:
    return tensor.requires_grad_() if requires_grad else tensor


@located
def as_tensor(data: Any, dtype: DType | type | None = None, device: DeviceLike | None = None) -> Tensor:
    """Convert data to a tensor, without a copy if possible."""
    return asarray(data, dtype=dtype, device=device)


@located
def asarray(
    obj: Any,
    *,
    dtype: DType | type | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Convert any array-like object to a tensor. With `copy=True`, the data are always copied; with
    `copy=False` never, and it is an error if they cannot be shared; with None, only if necessary. Gradients
    flow through the conversion, unless `requires_grad` is False."""
    made = _as_array(obj, dtype, device, copy)
    if requires_grad is False and made.requires_grad:
        return made.detach()
    return made.requires_grad_() if requires_grad and not made.requires_grad else made


def _as_array(obj: Any, dtype: DType | type | None, device: DeviceLike | None, copy: bool | None) -> Tensor:
    source = _shared(obj, dtype)
    if copy:
        if isinstance(source, Tensor):
            return source.to(dtype=dtype, device=device, copy=True)
        return tensor(source, dtype=dtype, device=device)
    if not isinstance(source, (Tensor, np.ndarray)):
        if copy is False:
            raise ArgumentError(f"a {type(obj).__name__} cannot be a tensor without a copy")
        return tensor(source, dtype=dtype, device=device)
    original = source if isinstance(source, Tensor) else from_numpy(source)
    if device is None and not isinstance(source, Tensor):
        device = devices.get_default_device()
    result = original.to(dtype=dtype, device=device)
    if copy is False and result is not original:
        raise ArgumentError(f"a {original.current().type} on {original.device} cannot be this without a copy")
    return result


def _shared(obj: Any, dtype: DType | type | None) -> Any:
    """A tensor or NumPy array in the memory of an array-like object, if it shares that; else the object
    itself."""
    if isinstance(obj, (Tensor, np.ndarray, np.generic)):
        return obj
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())
    return np.asarray(obj) if hasattr(obj, "__array__") else obj


@located
def from_numpy(array: np.ndarray) -> Tensor:
    """Make a tensor that shares the memory of a NumPy array. An op sees what the array holds when the op is
    called. In-place operators give the tensor new memory, and do not change the array."""
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"takes a NumPy array, not {type(array).__name__}", help="use tenfold.tensor")
    dtypes.from_numpy(array.dtype)
    return _borrowed(np.asarray(array))


def _borrowed(memory: np.ndarray) -> Tensor:
    """A tensor on memory that others may write."""
    tensor = leaf(memory, Device("cpu"))
    tensor._alias = borrowing(tensor._value, memory)
    return tensor


@located
def frombuffer(
    buffer: Any, *, dtype: DType | type, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Make a one-dimensional tensor that reads the memory of a bytes-like object."""
    try:
        view = memoryview(buffer).cast("B")
    except TypeError:
        raise ArgumentError(
            f"takes a bytes-like object whose memory is in one piece, not {type(buffer).__name__}",
            help="use bytes, a bytearray, a memoryview or an array",
        ) from None
    wanted = as_dtype(dtype)
    if not isinstance(count, int) or not isinstance(offset, int):
        raise ArgumentError(f"count and offset are ints, not {count!r} and {offset!r}")
    if not len(view) or not count:
        raise ArgumentError(f"a buffer of {len(view)} bytes, of which {count} elements, is no tensor")
    if not 0 <= offset < len(view):
        raise ArgumentError(f"the offset {offset} is not inside a buffer of {len(view)} bytes")
    left = len(view) - offset
    if count < 0 and left % wanted.itemsize:
        raise ArgumentError(f"{left} bytes are no whole number of {wanted.name} of {wanted.itemsize} bytes")
    if count * wanted.itemsize > left:
        raise ArgumentError(
            f"{count} elements of {wanted.name} need more than the {left} bytes that are there"
        )
    return _asking(_borrowed(np.frombuffer(buffer, wanted.numpy, count, offset)), requires_grad)


@located
def from_dlpack(ext_tensor: Any, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """Make a tensor that reads the memory of another library's array."""
    if isinstance(ext_tensor, Tensor):
        tensor = ext_tensor
    else:
        tensor = _imported(ext_tensor)
    return tensor.to(device=device, copy=bool(copy))


# The names of DLPack's capsules, and how many bytes stand before the device in what they lead to: the address
# of the data, and since version 1 also the version, a context, a deleter and flags.
_TENSORS = {b"dltensor": 8, b"dltensor_versioned": 40}


class _Capsule:
    """What `__dlpack__` gave, with the device that it tells of."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        address_of = ctypes.pythonapi.PyCapsule_GetPointer
        address_of.restype, address_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        for name, before in _TENSORS.items():
            try:
                address = address_of(self._capsule, name)
            except ValueError:
                continue
            kind, index = (ctypes.c_int32 * 2).from_address(address + before)
            return int(kind), int(index)
        raise ArgumentError("the capsule is not DLPack's, or was used already")


def _imported(array: Any) -> Tensor:
    if type(array).__name__ == "PyCapsule":
        array = _Capsule(array)
    elif not hasattr(array, "__dlpack__"):
        raise ArgumentError(f"a {type(array).__name__} has no __dlpack__", help="use tenfold.tensor")
    negates = getattr(array, "is_neg", None)  # a view of PyTorch's that does, which DLPack does not tell
    if negates is not None and negates():
        array = array.resolve_neg()
    kind, index = array.__dlpack_device__()
    if int(kind) == 1:
        try:
            return from_numpy(np.from_dlpack(array))
        except (BufferError, RuntimeError):  # a dtype that NumPy itself does not have, such as bfloat16
            place = Device("cpu")
    elif int(kind) == 2:
        place = Device("cuda", index)
    else:
        raise UnsupportedError(f"memory of DLPack's device type {int(kind)} is neither a CPU's nor CUDA's")
    buffer = xla.from_dlpack(array.__dlpack__(), place)
    if place.type == "cpu":
        return _borrowed(xla.fetch(buffer))
    dtype = dtypes.from_numpy(np.dtype(buffer.dtype))
    if not xla.is_row_major(buffer):
        return leaf(_dense(xla.fetch(buffer)), place, dtype)
    value = Value(TensorType(dtype, tuple(buffer.shape)), place.resolved, buffer=buffer)
    value.source = capture()
    return Tensor(value)


@located
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: DType | type | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor from a copy of data, by default with this tensor's dtype and device."""
    return tensor(
        data,
        dtype=dtype or self.dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


def _place(device: DeviceLike | None) -> Device:
    return devices.get_default_device() if device is None else Device(device)


def _dense(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(array.shape)


def as_array(data: Any, dtype: DType | None) -> np.ndarray:
    """The data as a dense NumPy array of the wanted dtype, or of the one that PyTorch infers."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = _dense(np.asarray(data))
        inferred = dtypes.from_numpy(array.dtype)
        return array if dtype in (None, inferred) else _converted(array, dtype)
    elements, shape = _flattened(data)
    kinds = set(map(type, elements))
    if not kinds <= _NUMBERS:
        elements, element_dtypes = _plain_numbers(elements)
    else:
        element_dtypes = {dtypes.of_python(kind()) for kind in kinds}
    if dtype is None:
        dtype = (
            functools.reduce(dtypes.promote_types, element_dtypes)
            if element_dtypes
            else dtypes.get_default_dtype()
        )
    return _filled(elements, dtype).reshape(shape)


_NUMBERS = {bool, int, float, complex}


def _flattened(data: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The elements of nested sequences, and the shape that these spell."""
    level: list[Any] = [data]
    shape: list[int] = []
    while level and _is_nested(level[0]):
        extent = len(level[0])
        for element in level:
            if not _is_nested(element):
                raise ShapeError(f"in dimension {len(shape)} the number {element!r} stands beside sequences")
            if len(element) != extent:
                raise ShapeError(
                    f"the data is ragged: in dimension {len(shape)} "
                    f"there are {extent} and {len(element)} elements",
                    help="pad the shorter sequences, or make one tensor for each",
                )
        shape.append(extent)
        level = list(itertools.chain.from_iterable(level))
    if any(_is_nested(entry) for entry in level if type(entry) not in _NUMBERS):
        raise ShapeError(f"in dimension {len(shape)} a sequence stands beside numbers")
    return level, tuple(shape)


def _is_nested(item: Any) -> bool:
    if isinstance(item, np.ndarray):
        return item.ndim > 0
    if isinstance(item, Sequence):
        return not isinstance(item, (str, bytes))
    if not isinstance(item, Sized) or not hasattr(item, "__getitem__") or isinstance(item, _NO_SEQUENCES):
        return False
    return bool(getattr(item, "ndim", 1))  # an array of another package may be a number


# They have a length and can be indexed, but are not sequences of numbers.
_NO_SEQUENCES = (Tensor, np.generic, Mapping, Set)


def _plain_numbers(elements: list[Any]) -> tuple[list[Any], set[DType]]:
    """Elements with tensors and NumPy scalars among them as Python numbers, and the dtypes they came in."""
    numbers, element_dtypes = [], set()
    for element in elements:
        if isinstance(element, Tensor) and element.numel() == 1:
            numbers.append(element.item())
            element_dtypes.add(element.dtype)
        elif isinstance(element, (np.generic, np.ndarray)):
            element_dtypes.add(dtypes.from_numpy(element.dtype))
            numbers.append(element.item())
        elif isinstance(element, (int, float, complex)):
            element_dtypes.add(dtypes.of_python(element))
            numbers.append(element)
        elif isinstance(element, Tensor):
            raise ShapeError(
                f"a tensor of {element.numel()} elements cannot be an element", help="use tenfold.stack"
            )
        else:
            raise DTypeError(f"a tensor cannot hold a {type(element).__name__} ({element!r})")
    return numbers, element_dtypes


def _filled(elements: list[Any], dtype: DType) -> np.ndarray:
    """Python numbers in a dtype; integers must fit it, but a negative one wraps into a narrow unsigned."""
    try:
        if dtype.kind == "bool":
            return np.array([bool(element) for element in elements], bool)
        if dtype.kind != "int":
            with np.errstate(all="ignore"):
                return _rounded(np.array(elements, np.complex128 if dtype.is_complex else np.float64), dtype)
        whole = np.array(elements, np.uint64 if dtype is dtypes.uint64 else np.int64)
    except (OverflowError, ValueError, TypeError):
        raise _misfit(elements, dtype) from None
    limits = dtypes.iinfo(dtype)
    low = limits.min if dtype.is_signed or dtype.itemsize == 8 else -limits.max
    if whole.size and not (low <= whole.min() and whole.max() <= limits.max):
        raise _misfit(elements, dtype, low)
    return whole.astype(dtype.numpy, copy=False)


def _rounded(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Narrow floats are rounded by way of float32; float8_e4m3fn, without infinity, ends at its largest."""
    if dtype.is_floating_point and dtype.itemsize < 4:
        array = array.astype(np.float32)
    if dtype is dtypes.float8_e4m3fn:
        array = np.clip(array, -448, 448)
    return array.astype(dtype.numpy, copy=False)


def _misfit(elements: list[Any], dtype: DType, low: int | None = None) -> TenfoldError:
    """The error for the first element that a dtype does not hold."""
    for element in elements:
        if isinstance(element, complex):
            return DTypeError(
                f"the complex number {element} does not fit {dtype.name}", help="use a complex dtype"
            )
        if dtype.kind == "int":
            limits = dtypes.iinfo(dtype)
            if not (limits.min if low is None else low) <= element <= limits.max:
                return NumberOutOfRange(
                    f"the number {element} does not fit {dtype.name}", help="choose a wider dtype"
                )
    return NumberOutOfRange(f"a number is too large for {dtype.name}", help="choose a wider dtype")


def _converted(array: np.ndarray, dtype: DType | None) -> np.ndarray:
    assert dtype is not None
    if dtype.kind == "bool":
        return np.asarray(array != 0)
    if array.dtype.kind == "c" and not dtype.is_complex:
        array = array.real
    with np.errstate(all="ignore"):
        return _rounded(array, dtype)
