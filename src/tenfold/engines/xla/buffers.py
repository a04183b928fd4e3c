"""Arrays on devices: made from NumPy arrays, read, copied, and lent through DLPack."""

from __future__ import annotations

import contextlib
import ctypes
import math
import sys
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import EngineError
from tenfold.base.meshes import Sharding
from tenfold.engines.xla import clients
from tenfold.engines.xla.clients import resolve
from tenfold.engines.xla.door import jaxlib
from tenfold.engines.xla.errors import translate


def put(array: np.ndarray, device: Device) -> Any:
    """A host array copied into a buffer of the device; over a mesh, to each of its devices."""
    if device.mesh is not None:
        return clients.meshes.put(array, Sharding.replicated(device.mesh, array.ndim))
    return put_on(array, resolve(device)[1])


def put_on(array: np.ndarray, xla_device: Any) -> Any:
    j = jaxlib()
    sharding = j.sharding(xla_device)
    try:
        whole = _own_memory(array)  # since XLA computes with it where it lies
        with _wide_types(j):
            buffer = j._jax.batched_device_put(
                Aval(array.shape, array.dtype, sharding), sharding, [whole], [xla_device]
            )
    except Exception as error:
        raise translate(error) from None
    if buffer.on_device_size_in_bytes() != array.nbytes:
        raise EngineError(f"jaxlib did not keep {array.dtype} as it is")
    return buffer


CACHE_LINE = 64


def _own_memory(array: np.ndarray) -> np.ndarray:
    """A copy in memory of its own; a large one begins a cache line, as XLA's own arrays do, since a vector
    that lies across two takes longer to load."""
    if array.nbytes < 4096:
        return np.array(array, order="C")
    memory = np.empty(array.nbytes + CACHE_LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % CACHE_LINE
    whole = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    whole[...] = array
    return whole


def copy(buffer: Any, device: Device) -> Any:
    """The same data in memory of its own, on the device."""
    if device.mesh is not None:
        return clients.meshes.copy(buffer)
    _, xla_device = resolve(device)
    j = jaxlib()
    always = j._jax.ArrayCopySemantics.ALWAYS_COPY
    devices, sharding = j.xc.DeviceList((xla_device,)), j.sharding(xla_device)
    try:
        copied = j._jax.batched_copy_array_to_devices_with_sharding([buffer], [devices], [sharding], [always])
    except Exception as error:
        raise translate(error) from None
    return copied[0]


# DLPack's codes for kinds of numbers, where NumPy does not know them.
_DLPACK_NAMES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12}


def lend(array: np.ndarray) -> Any:
    """A capsule of the array's own memory for others to read, not for XLA to compute with."""
    code = _DLPACK_NAMES.get(array.dtype.name, 6 if array.dtype.kind == "b" else None)
    if code is None:
        return array.__dlpack__()
    capsule = array.view(f"u{array.itemsize}").__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # In a DLManagedTensor the kind of numbers comes after the pointer (8 bytes), the device (8), ndim (4).
    ctypes.c_uint8.from_address(pointer_of(capsule, b"dltensor") + 20).value = code
    return capsule


@contextlib.contextmanager
def _wide_types(j: SimpleNamespace) -> Iterator[None]:
    """Keep jaxlib from narrowing 64-bit arrays, which it does by a switch that it shares with JAX."""
    with clients.lock:
        j._jax.jax_jit.set_enable_x64_state(j.wide)
        try:
            yield
        finally:
            jax_config = sys.modules.get("jax._src.config")
            if jax_config is not None:
                j._jax.jax_jit.set_enable_x64_state(jax_config.enable_x64)


class Aval:
    """What jaxlib asks about an array that it is to make."""

    weak_type = False
    vma = frozenset[Any]()

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, sharding: Any):
        self.on_host = sharding.on_host
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.size = math.prod(shape)
        self.sharding = sharding


def around(part: Any, shape: tuple[int, ...], dtype: Any, xla_device: Any) -> Any:
    """A part of an array over several devices as a buffer of the device that has it."""
    j = jaxlib()
    sharding = j.sharding(xla_device)
    aval = Aval(shape, dtype, sharding)
    return j._jax.ArrayImpl(aval, sharding, [part], committed=True, _skip_checks=True)


def described(shape: tuple[int, ...], dtype: np.dtype, xla_device: Any) -> Any:
    """What jaxlib asks about a buffer that is yet to come."""
    return Aval(shape, dtype, jaxlib().sharding(xla_device))


def fetch(buffer: Any) -> np.ndarray:
    """A buffer's data as a NumPy array, read-only, and on the CPU the same memory."""
    try:
        aval = buffer.aval
        if type(aval) is Aval and aval.on_host and aval.dtype.isbuiltin == 1 and aval.size:
            return np.asarray(memoryview(buffer))
        if getattr(aval, "sharded", False):
            return clients.meshes.fetch(buffer)
        # Without the package jax, np.asarray knows no bfloat16.
        return buffer._single_device_array_to_np_array_did_copy()[0]
    except Exception as error:
        raise translate(error) from None


def array_type() -> type:
    """What buffers are."""
    return jaxlib()._jax.ArrayImpl


def fetch_ahead(buffer: Any) -> None:
    """Let a buffer's data come to the host meanwhile, where it will be fetched."""
    buffer._copy_single_device_array_to_host_async()


# What reads a number of a dtype at an address.
_AT_ADDRESS: dict[DType, Callable[[int], Any]] = {
    dtypes.bool_: ctypes.c_bool.from_address,
    dtypes.uint8: ctypes.c_uint8.from_address,
    dtypes.int8: ctypes.c_int8.from_address,
    dtypes.int16: ctypes.c_int16.from_address,
    dtypes.int32: ctypes.c_int32.from_address,
    dtypes.int64: ctypes.c_int64.from_address,
    dtypes.float32: ctypes.c_float.from_address,
    dtypes.float64: ctypes.c_double.from_address,
}
_CPU = Device("cpu")


def number(buffer: Any, dtype: DType, device: Device) -> Any:
    """The one element of a buffer as a Python number; much sooner than as an array. On the CPU it mostly is
    there, but a program whose inputs are still being copied runs after the call that starts it returns."""
    is_here = device is _CPU or (device.type == "cpu" and (device.mesh is None or device.mesh.size == 1))
    read = _AT_ADDRESS.get(dtype) if is_here else None
    if read is None:
        return fetch(buffer).item()
    try:
        if not buffer.is_ready():
            buffer.block_until_ready()
        return read(buffer.unsafe_buffer_pointer()).value
    except Exception as error:
        raise translate(error) from None


class Shared:
    """The arrays whose memory another library sees, and may write at any time. `times` counts how often one
    was lent or borrowed."""

    def __init__(self) -> None:
        self.times = 0
        self._known: dict[int, weakref.ref[Any]] = {}

    def note(self, buffer: Any) -> None:
        key = id(buffer)
        self._known[key] = weakref.ref(buffer, lambda _: self._known.pop(key, None))
        self.times += 1

    def __contains__(self, buffer: Any) -> bool:
        return id(buffer) in self._known


shared = Shared()


def from_dlpack(capsule: Any, device: Device) -> Any:
    _, xla_device = resolve(device)
    try:
        buffer = jaxlib()._jax.dlpack_managed_tensor_to_buffer(capsule, xla_device, None)
    except Exception as error:
        raise translate(error) from None
    shared.note(buffer)
    return buffer


def is_row_major(buffer: Any) -> bool:
    """Whether a buffer that came from elsewhere lies as programs expect it: the last dimension is fastest."""
    text = str(buffer._pjrt_layout)
    order = text[1 : text.find("}")].partition(":")[0]
    return order == ",".join(map(str, reversed(range(buffer.ndim))))


def to_dlpack(buffer: Any) -> Any:
    shared.note(buffer)
    return jaxlib()._jax.buffer_to_dlpack_managed_tensor(buffer, stream=None)


def pointer(buffer: Any) -> int:
    """The address of a buffer's data, which is there."""
    buffer.block_until_ready()
    return buffer.unsafe_buffer_pointer()
