"""libtenfold from Python, by ctypes: every function of tenfold.h, with its failures as exceptions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import (
    EngineError,
    IndexOutOfRange,
    MissingEngine,
    OutOfMemory,
    TenfoldError,
    UnknownName,
)
from tenfold.capi.describe import HEADER, Function, read_enums, read_header

__all__ = ["CONSTANTS", "Device", "Library", "Scalar"]

# tenfold.h's constants by type, such as tn_tag, and by words, such as tensor.
CONSTANTS = {enum.name: enum.words for enum in read_enums(HEADER.read_text("utf-8"))}
_SCALAR = CONSTANTS["tn_scalar"]


class Device(ctypes.Structure):
    """tn_device"""

    _fields_ = (("type", ctypes.c_int32), ("index", ctypes.c_int32))


class _Complex(ctypes.Structure):
    _fields_ = (("re", ctypes.c_double), ("im", ctypes.c_double))


class _Number(ctypes.Union):
    _fields_ = (("i", ctypes.c_int64), ("d", ctypes.c_double), ("c", _Complex), ("b", ctypes.c_bool))


class Scalar(ctypes.Structure):
    """tn_scalar"""

    _fields_ = (("tag", ctypes.c_int32), ("as_", _Number))

    @classmethod
    def of(cls, number: complex) -> Scalar:
        made = cls()
        if isinstance(number, bool):
            made.tag, made.as_.b = _SCALAR["bool"], number
        elif isinstance(number, int):
            made.tag, made.as_.i = _SCALAR["int"], number
        elif isinstance(number, float):
            made.tag, made.as_.d = _SCALAR["double"], number
        else:
            made.tag, made.as_.c.re, made.as_.c.im = _SCALAR["complex"], number.real, number.imag
        return made

    @property
    def number(self) -> complex:
        value = self.as_
        by_word = {
            "int": value.i,
            "double": value.d,
            "complex": complex(value.c.re, value.c.im),
            "bool": value.b,
        }
        return {_SCALAR[word]: number for word, number in by_word.items()}[self.tag]


_PLAIN: dict[str, Any] = {
    "void": None,
    "int": ctypes.c_int,
    "bool": ctypes.c_bool,
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "tn_device": Device,
    "tn_scalar": Scalar,
    "const char *": ctypes.c_char_p,
    **dict.fromkeys(("tn_status", "tn_dtype", "tn_layout", "tn_memory_format", "tn_tag"), ctypes.c_int32),
}
# By tenfold.h's codes; what is not here is an EngineError.
_ERRORS: dict[int, type[TenfoldError]] = {
    CONSTANTS["tn_status"]["error_index"]: IndexOutOfRange,
    CONSTANTS["tn_status"]["error_not_found"]: UnknownName,
    CONSTANTS["tn_status"]["error_memory"]: OutOfMemory,
    CONSTANTS["tn_status"]["error_not_available"]: MissingEngine,
}


class Library:
    """A libtenfold.so. Its functions are attributes, bound when first used; `raw` gives them unchecked."""

    def __init__(self, path: str):
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise MissingEngine(f"libtenfold cannot be loaded: {error}", help="tenfold capi build") from None
        self.functions = {
            function.name: function for function in read_header(HEADER.read_text("utf-8")).functions
        }

    def raw(self, name: str) -> Any:
        """A function with its C types, as it is."""
        function = self.functions[name]
        raw = getattr(self.library, name)
        raw.restype = _PLAIN.get(function.returns, ctypes.c_void_p)
        raw.argtypes = [_PLAIN.get(parameter.ctype, ctypes.c_void_p) for parameter in function.parameters]
        return raw

    def __getattr__(self, name: str) -> Any:
        if name not in self.functions:
            raise AttributeError(f"libtenfold has no {name}")
        found = self._checked(self.functions[name], self.raw(name))
        setattr(self, name, found)
        return found

    def _checked(self, function: Function, raw: Callable[..., Any]) -> Callable[..., Any]:
        if function.errors == "status":

            def call(*arguments: Any) -> Any:
                if raw(*arguments) != 0:
                    raise self.error()

        elif function.errors == "minus_one":

            def call(*arguments: Any) -> Any:
                result = raw(*arguments)
                if result == -1:
                    raise self.error()
                return result

        elif function.errors == "null":

            def call(*arguments: Any) -> Any:
                result = raw(*arguments)
                if result is None:
                    raise self.error()
                return result

        else:
            return raw
        return call

    def error(self) -> TenfoldError:
        """The error of this thread's last call."""
        code = self.tn_error_code()
        message = self.tn_error_message().decode("utf-8", "replace")
        self.tn_error_clear()
        return _ERRORS.get(code, EngineError)(message)

    def text(self, name: str, *arguments: Any) -> str:
        """The text that a function writes into a buffer."""
        function = getattr(self, name)
        size = function(*arguments, None, 0) + 1
        buffer = ctypes.create_string_buffer(size)
        function(*arguments, buffer, size)
        return buffer.value.decode("utf-8", "replace")


def handles(tensors: Sequence[int | None]) -> tuple[Any, int]:
    """Tensor handles as an array and its count."""
    return (ctypes.c_void_p * max(len(tensors), 1))(*tensors), len(tensors)


def numbers(given: Sequence[int]) -> tuple[Any, int]:
    """Whole numbers as an array and its count."""
    return (ctypes.c_int64 * max(len(given), 1))(*given), len(given)
