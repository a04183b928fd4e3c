"""TorchScript through libtenfold: modules that are loaded and called, and Traces that become methods of them.

Arguments and results are Python's values: arrays for tensors, numbers, strings, None, and lists, tuples and
dicts of these.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.dtypes import from_numpy
from tenfold.base.errors import ArgumentError, TenfoldError, UnsupportedError
from tenfold.capi.binding import CONSTANTS, Library, handles
from tenfold.engines.libtorch import Run, library
from tenfold.engines.libtorch_calls import Calls, Held
from tenfold.trace.collect import Trace

__all__ = ["Outside", "Recorded", "Script", "traced"]

_TAGS = CONSTANTS["tn_tag"]
_TRACED = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
CPU = Device("cpu")


class Outside(NamedTuple):
    """A tensor that a traced program reads: a parameter or buffer of the module by its name, or a
    constant."""

    name: str | None
    array: np.ndarray
    trained: bool


class _Values(Calls):
    """Values on their way to libtorch and back, freed together."""

    def __init__(self, lib: Library):
        super().__init__(lib, CPU)
        self.values: list[int] = []
        self.given: list[tuple[np.ndarray, Held]] = []  # arrays, and the tensors with their copies

    def close(self) -> None:
        for value in self.values:
            self.lib.tn_value_free(value)
        self.values.clear()
        super().close()

    def keep(self, value: int) -> int:
        self.values.append(value)
        return value

    def value(self, argument: Any) -> int:
        """A value of libtorch's."""
        lib = self.lib
        if isinstance(argument, np.ndarray):
            return self.keep(lib.tn_value_tensor(self.tensor(argument)))
        if argument is None:
            return self.keep(lib.tn_value_none())
        for kind, make in (
            (bool, lib.tn_value_bool),
            (int, lib.tn_value_int),
            (float, lib.tn_value_double),
        ):
            if isinstance(argument, kind):
                return self.keep(make(argument))
        if isinstance(argument, str):
            return self.keep(lib.tn_value_string(argument.encode()))
        if isinstance(argument, (tuple, list)):
            make = lib.tn_value_tuple if isinstance(argument, tuple) else lib.tn_value_list
            return self.keep(make(*_array([self.value(element) for element in argument])))
        if isinstance(argument, dict):
            keys, _ = _array([self.value(key) for key in argument])
            return self.keep(
                lib.tn_value_dict(keys, *_array([self.value(element) for element in argument.values()]))
            )
        raise ArgumentError(f"a {type(argument).__name__} is no value of TorchScript's")

    def tensor(self, array: np.ndarray) -> Held:
        """A tensor with a copy of an array, which knows what is written to the tensor."""
        whole = np.ascontiguousarray(array).reshape(array.shape)
        handle = self.copied(whole, from_numpy(whole.dtype))
        self.given.append((array, handle))
        return handle

    def array(self, handle: Held) -> np.ndarray:
        return self.fetch(handle)

    def written(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The arrays to whose tensors something was written, each with what they hold now."""
        now = [(array, self.fetch(handle)) for array, handle in self.given]
        return [(array, found) for array, found in now if found.tobytes() != array.tobytes()]

    def python(self, value: int) -> Any:
        """What a value is in Python, an array for a tensor."""
        lib, tag = self.lib, self.lib.tn_value_tag(value)
        if tag == _TAGS["tensor"]:
            return self.array(self.own(lib.tn_value_to_tensor(value)))
        if tag == _TAGS["none"]:
            return None
        for word, kind in (("bool", ctypes.c_bool), ("int", ctypes.c_int64), ("double", ctypes.c_double)):
            if tag == _TAGS[word]:
                number = kind()
                getattr(lib, f"tn_value_to_{word}")(value, ctypes.byref(number))
                return number.value
        if tag == _TAGS["string"]:
            return _text(lib.tn_value_to_string, value)
        if tag in (_TAGS["list"], _TAGS["tuple"], _TAGS["dict"]):
            count = lib.tn_value_count(value)
            parts = [self.python(self.keep(lib.tn_value_at(value, i))) for i in range(count)]
            if tag == _TAGS["dict"]:
                keys = [self.python(self.keep(lib.tn_value_key_at(value, i))) for i in range(count)]
                return dict(zip(keys, parts, strict=True))
            return parts if tag == _TAGS["list"] else tuple(parts)
        raise UnsupportedError(
            f"a value of type {_text(lib.tn_value_type, value)} has no form in Python here"
        )


class _Recording(_Values):
    """The values of a call that libtorch's autograd records, with the tensors behind its arrays."""

    def __init__(self, lib: Library, followed: Sequence[np.ndarray]):
        super().__init__(lib)
        self.followed = {id(array) for array in followed}
        self.inputs: dict[int, Held] = {}  # by the ids of arrays that are followed
        self.outputs: list[tuple[np.ndarray, Held]] = []

    def tensor(self, array: np.ndarray) -> Held:
        handle = super().tensor(array)
        if id(array) in self.followed:
            self.lib.tn_set_requires_grad(handle, True)
            self.inputs[id(array)] = handle
        return handle

    def array(self, handle: Held) -> np.ndarray:
        array = super().array(handle)
        if self.lib.tn_requires_grad(handle) == 1:
            self.outputs.append((array, handle))
        return array


class Script:
    """A TorchScript module."""

    def __init__(self, handle: int):
        self.lib = library()
        self.handle = handle
        self._free = weakref.finalize(self, self.lib.tn_module_free, handle)

    @classmethod
    def load(cls, source: str | bytes) -> Script:
        lib = library()
        if isinstance(source, bytes):
            return cls(lib.tn_module_load_data(source, len(source), None))
        return cls(lib.tn_module_load(source.encode(), None))

    @classmethod
    def compile(cls, source: str) -> Script:
        """A module whose methods are the functions of a source."""
        return cls(library().tn_module_compile(source.encode()))

    def call(self, method: str, arguments: Sequence[Any]) -> tuple[Any, list[tuple[np.ndarray, np.ndarray]]]:
        """What a method gives, and the arrays among its arguments that it wrote to, with what it wrote."""
        values, scope = _Values(self.lib), self.lib.tn_no_grad_begin()
        try:
            return self._called(values, method, arguments), values.written()
        finally:
            self.lib.tn_scope_end(scope)
            values.close()

    def record(
        self,
        method: str,
        arguments: Sequence[Any],
        followed: Sequence[np.ndarray],
        trained: Sequence[tuple[Script, str, str]],
    ) -> Recorded:
        """A call with gradients by arrays among its arguments and by tensors of modules, each a module,
        "parameter" or "buffer", and a name."""
        values = _Recording(self.lib, followed)
        recorded = Recorded(values)
        recorded.result, recorded.written = self._called(values, method, arguments), values.written()
        recorded.inputs += [values.inputs[id(array)] for array in followed]
        recorded.inputs += [part._part(values, kind, name) for part, kind, name in trained]
        return recorded

    def _called(self, values: _Values, method: str, arguments: Sequence[Any]) -> Any:
        stack = self.lib.tn_stack_new()
        try:
            for argument in arguments:
                self.lib.tn_stack_push(stack, values.value(argument))
            self.lib.tn_module_call(self.handle, method.encode(), stack)
            return values.python(values.keep(self.lib.tn_stack_at(stack, 0)))
        finally:
            self.lib.tn_stack_free(stack)

    def ask(self, what: str) -> Any:
        """What the module has: its methods, parameters, buffers or children."""
        values = _Values(self.lib)
        try:
            return values.python(values.keep(getattr(self.lib, f"tn_module_{what}")(self.handle)))
        finally:
            values.close()

    def child(self, name: str) -> Script:
        return Script(self.lib.tn_module_child(self.handle, name.encode()))

    def identity(self, kind: str, name: str) -> int:
        """A number that a parameter or buffer of the module has as long as it is there, under all names."""
        values = _Values(self.lib)
        try:
            return int(self._part(values, kind, name))
        finally:
            values.close()

    def write(self, kind: str, name: str, array: np.ndarray) -> None:
        """Write an array to a parameter or buffer of the module."""
        values = _Values(self.lib)
        try:
            tensor = values.apply("aten::detach", self._part(values, kind, name))
            values.apply("aten::copy_", tensor, values.copied(array, from_numpy(array.dtype)), False)
        finally:
            values.close()

    def is_followed(self, kind: str, name: str) -> bool:
        """Whether a parameter or buffer of the module requires gradients."""
        values = _Values(self.lib)
        try:
            return bool(self.lib.tn_requires_grad(self._part(values, kind, name)) == 1)
        finally:
            values.close()

    def follow(self, kind: str, name: str, followed: bool) -> None:
        values = _Values(self.lib)
        try:
            self.lib.tn_set_requires_grad(self._part(values, kind, name), followed)
        finally:
            values.close()

    def _part(self, values: _Values, kind: str, name: str) -> Held:
        return values.own(getattr(self.lib, f"tn_module_{kind}")(self.handle, name.encode()))

    def text(self, what: str, *arguments: Any) -> str:
        return _text(getattr(self.lib, f"tn_module_{what}"), self.handle, *arguments)

    def train(self, mode: bool) -> None:
        self.lib.tn_module_train(self.handle, mode)

    @property
    def training(self) -> bool:
        return bool(self.lib.tn_module_is_training(self.handle))

    def bytes(self) -> bytes:
        values = _Values(self.lib)
        try:
            return values.fetch(values.own(self.lib.tn_module_save_data(self.handle))).tobytes()
        finally:
            values.close()


class Recorded:
    """A call that libtorch's autograd recorded, for as long as its gradients may be asked for."""

    result: Any
    written: list[tuple[np.ndarray, np.ndarray]]

    def __init__(self, values: _Recording):
        self._values = values
        self.inputs: list[Held] = []  # by which it has gradients
        weakref.finalize(self, values.close)

    def outputs(self) -> list[np.ndarray]:
        """The arrays of the result that depend on inputs."""
        return [array for array, _ in self._values.outputs]

    def gradients(self, cotangents: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
        """The gradient by each input, from those of the outputs."""
        lib, values = self._values.lib, _Values(self._values.lib)
        known = [
            (handle, cotangent)
            for (_, handle), cotangent in zip(self._values.outputs, cotangents, strict=True)
            if cotangent is not None
        ]
        try:
            outputs = handles([handle for handle, _ in known])
            given = handles([values.tensor(cotangent) for _, cotangent in known])
            out, count = handles([None] * len(self.inputs))
            lib.tn_gradients(*outputs, *handles(self.inputs), *given, True, False, True, out, count)
            return [values.fetch(values.own(handle)) if handle else None for handle in out]
        finally:
            values.close()


def traced(
    program: Trace, arguments: Sequence[Any], outside: Sequence[Outside], result: Callable[[list[Any]], Any]
) -> Script:
    """A module whose `forward` is a program: its first leaves are the arrays within `arguments`, in their
    order, the others are `outside`. `result` puts its outputs, in a list, into the form that `forward`
    gives."""
    lib, values = library(), _Values(library())
    module = Script(lib.tn_module_new(b"Traced"))
    stack = lib.tn_stack_new()
    try:
        held = [_registered(lib, module.handle, values, tensor) for tensor in outside]
        for argument in arguments:
            lib.tn_stack_push(stack, values.value(argument))
        _trace_into(module, program, stack, held, result)
    finally:
        lib.tn_stack_free(stack)
        values.close()
    return module


def _registered(lib: Library, module: int, values: _Values, outside: Outside) -> Held:
    """The tensor, in its place among the module's parts: a.b is b of the child a."""
    tensor = values.copied(outside.array, from_numpy(outside.array.dtype))
    if outside.name is None:
        return tensor
    *path, name = outside.name.split(".")
    opened = []
    try:
        for part in path:
            known = values.python(values.keep(lib.tn_module_children(module)))
            make = lib.tn_module_child if part in known else lib.tn_module_add_child
            module = make(module, part.encode())
            opened.append(module)
        if outside.trained:
            lib.tn_set_requires_grad(tensor, True)
        put = lib.tn_module_set_parameter if outside.trained else lib.tn_module_set_buffer
        put(module, name.encode(), tensor)
    finally:
        for child in opened:
            lib.tn_module_free(child)
    return tensor


def _trace_into(
    module: Script, program: Trace, stack: int, outside: Sequence[Held], result: Callable[[list[Any]], Any]
) -> None:
    """Run the program once on what the stack holds, while libtorch records."""
    lib = module.lib
    problems: list[TenfoldError] = []

    def run(stack: int, user: int) -> int:
        values, ran = _Values(lib), Run(lib, program, CPU)
        try:
            count = lib.tn_stack_count(stack)
            arguments = [values.keep(lib.tn_stack_at(stack, i)) for i in range(count)]
            inputs = [tensor for argument in arguments for tensor in _tensors(values, argument)]
            results = ran.handles([*inputs, *outside])
            value = _built(values, result(list(results)))
            lib.tn_stack_clear(stack)
            lib.tn_stack_push(stack, value)
            return 0
        except TenfoldError as error:
            problems.append(error)
            return int(lib.raw("tn_fail")(str(error.message).encode()))
        finally:
            ran.close()
            values.close()

    try:
        lib.tn_module_trace_method(module.handle, b"forward", _TRACED(run), stack, False, None)
    except TenfoldError:
        if problems:
            raise problems[0] from None
        raise


def _tensors(values: _Values, value: int) -> list[Held]:
    """The tensors within a value, in order."""
    lib = values.lib
    if lib.tn_value_tag(value) == _TAGS["tensor"]:
        return [values.own(lib.tn_value_to_tensor(value))]
    parts = [values.keep(lib.tn_value_at(value, i)) for i in range(lib.tn_value_count(value))]
    return [tensor for part in parts for tensor in _tensors(values, part)]


def _built(values: _Values, form: Any) -> int:
    """A value of tensors in lists, tuples and dicts."""
    lib = values.lib
    if isinstance(form, Held):
        return values.keep(lib.tn_value_tensor(form))
    if isinstance(form, dict):
        keys, _ = _array([values.value(key) for key in form])
        return values.keep(lib.tn_value_dict(keys, *_array([_built(values, part) for part in form.values()])))
    if isinstance(form, (tuple, list)):
        make = lib.tn_value_tuple if isinstance(form, tuple) else lib.tn_value_list
        return values.keep(make(*_array([_built(values, part) for part in form])))
    raise UnsupportedError(
        f"a traced function gives tensors in lists, tuples and dicts, and no {type(form).__name__}"
    )


def _array(values: Sequence[int]) -> tuple[Any, int]:
    return (ctypes.c_void_p * max(len(values), 1))(*values), len(values)


def _text(write: Callable[..., int], *arguments: Any) -> str:
    buffer = ctypes.create_string_buffer(write(*arguments, None, 0) + 1)
    write(*arguments, buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")
