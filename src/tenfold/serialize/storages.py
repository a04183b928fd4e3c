"""Memory in files: how tensors lie in storages, on their way out and on their way back in.

A storage is a run of bytes; a tensor in a file is a place in one: an offset, sizes and strides. Everything
that a file says of these is checked against the bytes that it really has before a tensor is made of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import NAMED, Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DeviceError, FormatError
from tenfold.flat.strides import contiguous, is_contiguous
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor, leaf, methods
from tenfold.tensor.dispatch import aten
from tenfold.tensor.parameter import Parameter
from tenfold.tensor.views import SAVED_APART
from tenfold.trace.context import context

MAX_RANK = 64
_MOST_BYTES = (1 << 63) - 1

# PyTorch's name of a typed storage; the dtypes that came later have none, and lie in untyped storages.
STORAGES = {
    "BoolStorage": dtypes.bool_,
    "ByteStorage": dtypes.uint8,
    "CharStorage": dtypes.int8,
    "ShortStorage": dtypes.int16,
    "IntStorage": dtypes.int32,
    "LongStorage": dtypes.int64,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "FloatStorage": dtypes.float32,
    "DoubleStorage": dtypes.float64,
    "ComplexFloatStorage": dtypes.complex64,
    "ComplexDoubleStorage": dtypes.complex128,
}


# PyTorch's function that makes a tensor on the meta device.
META = "_rebuild_meta_tensor_no_storage"


class Movable:
    """A storage as a function given for `map_location` sees it: on the CPU, and able to go elsewhere."""

    def __init__(self, device: Device):
        self.device = device

    def cpu(self) -> Movable:
        return Movable(Device("cpu"))

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Movable:
        return Movable(Device("cuda" if device is None else device))


class Places:
    """Where loaded tensors go: `map_location`, applied to the device that each was saved from."""

    def __init__(self, map_location: Any):
        self.chosen_by = map_location if callable(map_location) else None
        self.by_location: dict[str, Device] = {}
        self.everywhere: Device | None = None
        if isinstance(map_location, dict):
            self.by_location = {str(old): Device(new) for old, new in map_location.items()}
        elif map_location is not None and self.chosen_by is None:
            self.everywhere = Device(map_location)

    def of(self, location: str) -> Device:
        if self.everywhere is not None:
            return self.everywhere
        if location in self.by_location:
            return self.by_location[location]
        if self.chosen_by is not None:
            chosen = self.chosen_by(Movable(Device("cpu")), location)
            if isinstance(chosen, Movable):
                return chosen.device
            if chosen is not None:
                raise ArgumentError(
                    f"map_location returned a {type(chosen).__name__}",
                    help="return the storage that it is given, its cpu() or cuda(), or None",
                )
        try:
            device = Device(location)
        except DeviceError:
            raise self._unknown(location) from None
        if device.type in NAMED:
            raise self._unknown(location)
        return device

    def _unknown(self, location: str) -> DeviceError:
        return DeviceError(
            f"a tensor was saved from the device {location[:40]!r}, which Tenfold does not know",
            help='say where it is to go: map_location="cpu"',
        )


class Storage:
    """A storage as a file names it. Without a dtype its size is in bytes."""

    __slots__ = ("dtype", "key", "location", "size")

    def __init__(self, dtype: DType | None, key: str, location: str, size: int):
        self.dtype = dtype
        self.key = key
        self.location = location
        self.size = size

    @property
    def nbytes(self) -> int:
        return self.size * (self.dtype.itemsize if self.dtype else 1)

    def same(self, other: Storage) -> bool:
        return (self.dtype, self.location, self.size) == (other.dtype, other.location, other.size)


class Placed:
    """A tensor as a file describes it: a place in a storage."""

    __slots__ = (
        "attributes", "dtype", "metadata", "offset", "parameter", "requires_grad", "shape", "storage",
        "strides",
    )  # fmt: skip
    attributes: dict[str, Any]  # of the tensor, as a user's program set them

    def __init__(
        self,
        storage: Any,
        offset: Any,
        shape: Any,
        strides: Any,
        requires_grad: Any = False,
        dtype: Any = None,
        metadata: Any = None,
        parameter: bool = False,
    ):
        if not isinstance(storage, Storage):
            raise FormatError("a tensor of the file has no storage")
        dtype = storage.dtype or dtype
        if not isinstance(dtype, DType) or (storage.dtype is not None and dtype is not storage.dtype):
            raise FormatError("a tensor of the file has no dtype, or another than its storage")
        for numbers in (shape, strides):
            if not isinstance(numbers, tuple) or not all(
                type(number) is int and number >= 0 for number in numbers
            ):
                raise FormatError("a tensor of the file has sizes or strides that are not numbers from 0 up")
        if type(offset) is not int or offset < 0 or len(shape) != len(strides) or len(shape) > MAX_RANK:
            raise FormatError("a tensor of the file lies nowhere: its offset, sizes and strides do not fit")
        count, spread = math.prod(shape), math.prod(max(each, 1) for each in shape)
        last = offset + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
        held = storage.nbytes // dtype.itemsize
        if max(spread * dtype.itemsize, offset, *strides) > _MOST_BYTES or (count and last >= held):
            raise FormatError(
                f"a tensor of the file reaches element {last} of a storage of {held}: the file is damaged"
            )
        if not isinstance(metadata, dict) or not metadata.keys() <= {"conj", "neg"}:
            if metadata is not None:
                raise FormatError("a tensor of the file carries metadata that Tenfold does not know")
            metadata = {}
        self.storage = storage
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.requires_grad = bool(requires_grad)
        self.metadata = metadata
        self.parameter = parameter
        self.attributes = {}

    @property
    def dense(self) -> bool:
        return is_contiguous(self.shape, self.strides)

    @property
    def whole(self) -> bool:
        """Whether this is all of its storage, in order."""
        return self.dense and math.prod(self.shape) * self.dtype.itemsize == self.storage.nbytes


@dataclass(eq=False)
class PlacedMeta:
    """A tensor of a file that has no data, and so lies nowhere."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool
    parameter: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for numbers in (self.shape, self.strides):
            if type(numbers) is not tuple or not all(
                type(each) is int and 0 <= each <= _MOST_BYTES for each in numbers
            ):
                raise FormatError("a tensor of the file has sizes or strides that are not numbers from 0 up")
        last = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides))
        spread = math.prod(max(each, 1) for each in self.shape)
        if not isinstance(self.dtype, DType) or len(self.shape) != len(self.strides):
            raise FormatError("a tensor of the file has no dtype, or its sizes and strides do not fit")
        if len(self.shape) > MAX_RANK or max(last, spread) * self.dtype.itemsize > _MOST_BYTES:
            raise FormatError("a tensor of the file is larger than any memory")

    def finished(self) -> Tensor:
        dense = is_contiguous(self.shape, self.strides)
        make: Any = methods.empty_strided
        tensor = (
            aten("empty")(self.shape, dtype=self.dtype, device="meta")
            if dense
            else make(self.shape, self.strides, dtype=self.dtype, device="meta")
        )
        if self.parameter:
            return Parameter(tensor, bool(self.requires_grad))
        return tensor.requires_grad_() if self.requires_grad else tensor


def tensors_of(
    placed: Iterable[Placed], read: Callable[[Storage], np.ndarray], places: Places
) -> dict[Placed, Tensor]:
    """The tensors of a file. `read` gives a storage's bytes; tensors of one storage share its memory."""
    by_storage: dict[Storage, list[Placed]] = {}
    for each in placed:
        by_storage.setdefault(each.storage, []).append(each)
    made: dict[Placed, Tensor] = {}
    for storage, residents in by_storage.items():
        dtype = residents[0].dtype
        if any(resident.dtype is not dtype for resident in residents):
            raise FormatError(f"storage {storage.key[:40]!r} is of several dtypes at once")
        raw = read(storage)
        if raw.nbytes < storage.nbytes:
            raise FormatError(
                f"storage {storage.key[:40]!r} has {raw.nbytes} bytes where {storage.nbytes} are announced: "
                "the file is cut short or damaged"
            )
        count = storage.nbytes // dtype.itemsize
        raw = raw[: count * dtype.itemsize]
        # A bool of a damaged file may be any byte.
        flat = (raw != 0) if dtype is dtypes.bool_ else raw.view(dtype.numpy)
        for each, tensor in _residents(flat, residents, places.of(storage.location)):
            made[each] = finish_tensor(tensor, each, len(residents) > 1)
    return made


def _residents(
    flat: np.ndarray, residents: Sequence[Placed], device: Device
) -> Iterable[tuple[Placed, Tensor]]:
    """Each tensor of one storage. The first that is all of it stands for the storage; the rest are views."""
    if len(residents) == 1 and residents[0].dense:
        only = residents[0]
        held = flat[only.offset : only.offset + math.prod(only.shape)]
        return [(only, leaf(held.reshape(only.shape), device, only.dtype))]
    dtype = residents[0].dtype
    shape = next((resident.shape for resident in residents if resident.whole), flat.shape)
    base = leaf(flat.reshape(shape), device, dtype)
    return [
        (resident, base.data if resident.whole and resident.shape == shape else view_of(base, resident))
        for resident in residents
    ]


def view_of(base: Tensor, placed: Placed) -> Tensor:
    if not math.prod(placed.shape):
        return leaf(np.empty(placed.shape, placed.dtype.numpy), base.device, placed.dtype)
    return base.as_strided(placed.shape, placed.strides, placed.offset)


def finish_tensor(tensor: Tensor, placed: Placed, shared: bool) -> Tensor:
    if placed.metadata.get("conj"):
        tensor = tensor.conj()
    if placed.metadata.get("neg"):
        tensor = -tensor
    if placed.requires_grad and placed.dtype.kind not in ("float", "complex"):
        raise FormatError(
            f"a {placed.dtype.name} tensor of the file requires gradients, which it cannot have"
        )
    if placed.parameter:
        # A tensor that nobody else has may be taken over; one of a shared storage stays beside the others.
        return Parameter(tensor if shared else tensor.current(), placed.requires_grad)
    if not placed.requires_grad:
        return tensor
    return (tensor.detach() if shared else tensor).requires_grad_()


def attributes(tensor: Tensor) -> dict[str, Any]:
    """What a user's program has set on a tensor: t.name = value."""
    held = vars(tensor)
    return {name: held[name] for name in held if name not in OWN} if held else held


# What the package itself keeps there.
OWN = (SAVED_APART, "_open_dims")


class Saved:
    """A tensor on its way out: which storage it is in, and where."""

    __slots__ = ("key", "offset", "strides")

    def __init__(self, key: int, offset: int, strides: tuple[int, ...]):
        self.key = key
        self.offset = offset
        self.strides = strides


def stored(tensors: Sequence[Tensor]) -> tuple[list[np.ndarray], list[Saved]]:
    """The storages that tensors need in a file, and where in these each is.

    Tensors that share memory share a storage; a view whose siblings are not saved brings only what it shows.
    """
    shared: dict[int, list[int]] = {}
    for i, tensor in enumerate(tensors):
        alias = None if SAVED_APART in tensor.__dict__ else tensor._alias
        if alias is not None and not any(step.row.recodes for step in alias.steps):
            shared.setdefault(id(alias.storage), []).append(i)
    storages: list[Tensor] = []
    saved: dict[int, Saved] = {}
    for members in shared.values():
        if len(members) > 1:
            places = [tensors[i].share() for i in members]
            for i, place in zip(members, places):
                saved[i] = Saved(len(storages), place.offset, tuple(place.strides))
            storages.append(Tensor(places[0].storage.current()))
    for i, tensor in enumerate(tensors):
        if i not in saved:
            saved[i] = Saved(len(storages), 0, contiguous(tensor.shape))
            storages.append(tensor)
    return hosts(storages), [saved[i] for i in range(len(tensors))]


def hosts(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """The data of tensors, computed as one program."""
    if context.recorder is None:  # else the first to be asked for its data says that there is none
        evaluate.evaluate([tensor.current() for tensor in tensors])
    return [tensor._host() for tensor in tensors]
