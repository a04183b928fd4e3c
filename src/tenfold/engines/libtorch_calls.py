"""Calls of ATen's ops through libtenfold: a run's tensors, and arguments from Python's values to a stack."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import UnsupportedError
from tenfold.capi.binding import CONSTANTS, Device as PlainDevice, Library, Scalar, handles, numbers
from tenfold.flat.ir import TensorType
from tenfold.mlir.torch_types import SCALAR_TYPES
from tenfold.ops.promote import NUMBERS
from tenfold.ops.schema import Argument
from tenfold.ops.table import SLOT

_TAGS, _DEVICES = CONSTANTS["tn_tag"], CONSTANTS["tn_device"]
_FORMATS = CONSTANTS["tn_memory_format"]
_LAYOUTS = {"strided": CONSTANTS["tn_layout"]["strided"]}


class Held(int):
    """The handle of a tensor that a run owns, told apart from a number."""


class Calls:
    """What a run does with libtenfold. Tensors that it makes are in `made` until it closes, or frees them."""

    def __init__(self, lib: Library, device: Device):
        self.lib = lib
        self.device = device
        on_cuda = device.type == "cuda"
        self.place = PlainDevice(_DEVICES["cuda" if on_cuda else "cpu"], device.index or 0 if on_cuda else -1)
        self.made: dict[int, int] = {}  # how often each is owned: two handles of one tensor are equal
        self.generator: int | None = None

    def close(self) -> None:
        for handle, count in self.made.items():
            for _ in range(count):
                self.lib.tn_free(handle)
        self.made.clear()
        if self.generator is not None:
            self.lib.tn_generator_free(self.generator)

    def own(self, handle: int) -> Held:
        self.made[handle] = self.made.get(handle, 0) + 1
        return Held(handle)

    def free(self, handle: int) -> None:
        self.made[handle] -= 1
        self.lib.tn_free(handle)

    def wrap(self, array: np.ndarray) -> Held:
        """A tensor over an array's memory, or a copy of it on another device."""
        code = code_of(array.dtype.name)
        shape = numbers(array.shape)
        handle = self.own(self.lib.tn_tensor_wrap_data(array.ctypes.data, code, *shape, None, 0, None, None))
        if self.device.type == "cpu":
            return handle
        moved = self.own(self.lib.tn_to_device(handle, self.place, False))
        self.free(handle)
        return moved

    def fetch(self, handle: int) -> np.ndarray:
        shape = (ctypes.c_int64 * max(self.lib.tn_tensor_dim(handle), 1))()
        rank = self.lib.tn_tensor_shape(handle, shape, len(shape))
        dtype = by_code()[self.lib.tn_tensor_dtype(handle)]
        array = np.empty(tuple(shape[:rank]), dtype.numpy)
        self.lib.tn_tensor_to_data(handle, array.ctypes.data, array.nbytes)
        return array

    def copied(self, array: np.ndarray, dtype: DType) -> Held:
        """A tensor with a copy of an array."""
        whole = np.ascontiguousarray(array.astype(dtype.numpy)).reshape(array.shape)
        code, shape = code_of(dtype.name), numbers(whole.shape)
        handle = self.own(self.lib.tn_tensor_from_data(whole.ctypes.data, code, *shape, None, 0))
        return (
            handle
            if self.device.type == "cpu"
            else self.own(self.lib.tn_to_device(handle, self.place, False))
        )

    def apply(self, name: str, *arguments: Any) -> Held:
        """An op of one result, on tensors, numbers and tuples of numbers; a list is one of tensors."""
        stack = self.lib.tn_stack_new()
        try:
            for argument in arguments:
                self._push_plain(stack, argument)
            self.lib.tn_call_op(named(self.lib, name), stack)
            return self.own(self.lib.tn_stack_pop_tensor(stack))
        finally:
            self.lib.tn_stack_free(stack)

    def compact(self, handle: Held) -> Held:
        """A copy whose memory holds its elements alone, one after the other, as the Trace takes every value
        to lie. libtorch's own values may be views, with strides, an offset and a conjugation to be done."""
        resolved = self.apply("aten::resolve_neg", self.apply("aten::resolve_conj", handle))
        return self.apply("aten::clone", resolved, _FORMATS["contiguous_format"])

    def _push_plain(self, stack: int, value: Any) -> None:
        if isinstance(value, Held):
            self.lib.tn_stack_push_tensor(stack, value)
        elif isinstance(value, DType):
            self.lib.tn_stack_push_int(stack, code_of(value.name))
        elif isinstance(value, list):
            self.lib.tn_stack_push_tensors(stack, *handles(value))
        elif isinstance(value, tuple):
            self.lib.tn_stack_push_ints(stack, *numbers(value))
        elif isinstance(value, str):
            self.lib.tn_stack_push_string(stack, value.encode())
        else:
            self.lib.tn_stack_push_scalar(stack, Scalar.of(value))

    def results(self, stack: int) -> Iterator[int]:
        for i in range(self.lib.tn_stack_count(stack)):
            value = self.lib.tn_stack_at(stack, i)
            try:
                tag = self.lib.tn_value_tag(value)
                if tag == _TAGS["tensor"]:
                    yield self.lib.tn_value_to_tensor(value)
                    continue
                if tag not in (_TAGS["list"], _TAGS["tuple"]):
                    raise UnsupportedError("the op gives something that is no tensor")
                for k in range(self.lib.tn_value_count(value)):
                    entry = self.lib.tn_value_at(value, k)
                    try:
                        yield self.lib.tn_value_to_tensor(entry)
                    finally:
                        self.lib.tn_value_free(entry)
            finally:
                self.lib.tn_value_free(value)

    def push(
        self,
        stack: int,
        argument: Argument,
        value: Any,
        tensors: Iterator[int],
        result: TensorType,
        inputs: Sequence[TensorType],
    ) -> None:
        lib, type = self.lib, argument.type
        if argument.name == "device" and type.kind == "Device":
            self._push_value(stack, lib.tn_value_device(self.place))
        elif argument.name == "dtype" and value is None and not inputs:
            # Of the default dtype, which is Tenfold's.
            lib.tn_stack_push_int(stack, code_of(result.dtype.name))
        elif argument.name == "pin_memory" or value is None:
            lib.tn_stack_push_none(stack)
        elif value is SLOT:
            lib.tn_stack_push_tensor(stack, next(tensors))
        elif isinstance(value, tuple) and type.kind == "Tensor" and not type.is_list:
            self._push_array(stack, np.asarray(value, np.int64))  # numbers that a row read from a tensor
        elif isinstance(value, tuple):
            self._push_list(stack, type.kind, value, tensors)
        elif isinstance(value, DType):
            lib.tn_stack_push_int(stack, code_of(value.name))
        elif type.kind == "MemoryFormat":
            lib.tn_stack_push_int(stack, _FORMATS[str(value).rpartition(".")[2]])
        elif type.kind == "Layout":
            lib.tn_stack_push_int(stack, _LAYOUTS[str(value).rpartition(".")[2]])
        elif isinstance(value, str):
            lib.tn_stack_push_string(stack, value.encode())
        elif type.kind == "float":
            lib.tn_stack_push_double(stack, float(value))
        elif type.is_list:
            self._push_list(stack, type.kind, (value,) * max(type.list_size or 1, 1), tensors)
        elif type.kind == "Tensor":
            beside = inputs if argument.name in NUMBERS else ()
            self._push_number(stack, value, beside, result)
        elif isinstance(value, int | float | complex):
            lib.tn_stack_push_scalar(stack, Scalar.of(value))
        else:
            raise UnsupportedError(f"libtorch takes no {argument.name} such as {value!r}")

    def _push_list(self, stack: int, kind: str, elements: tuple, tensors: Iterator[int]) -> None:
        lib = self.lib
        if kind == "Tensor":
            entries = handles([next(tensors) if entry is SLOT else None for entry in elements])
            if None in elements:
                self._push_value(stack, lib.tn_value_optional_tensor_list(*entries))
            else:
                lib.tn_stack_push_tensors(stack, *entries)
        elif kind == "int":
            lib.tn_stack_push_ints(stack, *numbers(elements))
        elif kind == "bool":
            truths = (ctypes.c_bool * max(len(elements), 1))(*elements)
            self._push_value(stack, lib.tn_value_bool_list(truths, len(elements)))
        elif kind == "float":
            doubles = (ctypes.c_double * max(len(elements), 1))(*elements)
            self._push_value(stack, lib.tn_value_double_list(doubles, len(elements)))
        else:
            values = [lib.tn_value_scalar(Scalar.of(number)) for number in elements]
            try:
                self._push_value(stack, lib.tn_value_list(*handles(values)))
            finally:
                for value in values:
                    lib.tn_value_free(value)

    def _push_number(
        self, stack: int, number: complex, beside: Sequence[TensorType], result: TensorType
    ) -> None:
        """A number where a tensor is taken. An operand has the dtype that it and the tensors beside it
        promote to, or the result's where integers are divided: of another it would decide the result's,
        beside tensors of no dimensions."""
        entries: list[tuple[DType, dtypes.Category]] = [(dtypes.of_python(number), "number")]
        entries += [(type.dtype, "tensor" if type.rank else "scalar") for type in beside]
        dtype = dtypes.result_type(entries)
        if beside and result.dtype.is_floating_point and not (dtype.is_floating_point or dtype.is_complex):
            dtype = result.dtype
        self._push_array(stack, np.asarray(number).astype(dtype.numpy))

    def _push_array(self, stack: int, array: np.ndarray) -> None:
        code = code_of(array.dtype.name)
        handle = self.lib.tn_tensor_from_data(array.ctypes.data, code, *numbers(array.shape), None, 0)
        try:
            self.lib.tn_stack_push_tensor(stack, handle)
        finally:
            self.lib.tn_free(handle)

    def push_generator(self, stack: int, state: np.ndarray) -> None:
        if self.generator is None:
            self.generator = self.lib.tn_generator_new(self.place, 0)
        self.lib.tn_generator_set_seed(self.generator, seed_of(state))
        self._push_value(stack, self.lib.tn_value_generator(self.generator))

    def _push_value(self, stack: int, value: int) -> None:
        try:
            self.lib.tn_stack_push(stack, value)
        finally:
            self.lib.tn_value_free(value)


_ops: dict[str, int] = {}


def named(lib: Library, name: str) -> int:
    op = _ops.get(name)
    if op is None:
        op = _ops[name] = lib.tn_find(name.encode())
    return op


def code_of(name: str) -> int:
    number = SCALAR_TYPES.get(name)
    if number is None:
        raise UnsupportedError(f"libtorch has no dtype {name}")
    return number


@functools.cache
def by_code() -> dict[int, DType]:
    return {code: dtypes.BY_NAME[name] for name, code in SCALAR_TYPES.items() if name in dtypes.BY_NAME}


_WORD = (1 << 64) - 1


def seed_of(state: np.ndarray) -> int:
    """A seed that every bit of a generator's state takes part in."""
    mixed = 0
    for word in state.ravel().tolist():
        mixed = (mixed ^ word) * 0xBF58476D1CE4E5B9 & _WORD
        mixed = (mixed ^ mixed >> 31) * 0x94D049BB133111EB & _WORD
        mixed ^= mixed >> 29
    return mixed


def next_state(state: np.ndarray) -> np.ndarray:
    counted = state.copy()
    counted.ravel()[-1] += np.asarray(1, state.dtype)
    return counted
