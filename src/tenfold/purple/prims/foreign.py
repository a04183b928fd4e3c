"""Foreign functions through ctypes: what `ffi-declare` names, as a function on Purple's values."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from typing import Any

from tenfold.purple import core
from tenfold.purple.errors import PurpleError
from tenfold.purple.numerals import to_float
from tenfold.purple.prims import foreign_tensors
from tenfold.purple.prims.registry import want_int, want_number, want_string, wrong_type
from tenfold.purple.values import NIL, UNSPECIFIED, Pointer

CTYPES: dict[str, Any] = {
    "int": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "float": ctypes.c_double,
    "float32": ctypes.c_float,
    "bool": ctypes.c_bool,
    "string": ctypes.c_char_p,
    "pointer": ctypes.c_void_p,
    "tensor": ctypes.c_void_p,
    "void": None,
}


def function(declared: core.Ffi) -> Callable[..., Any]:
    """The foreign function, found when it is first called."""
    state: list[Any] = []

    def call(*arguments: Any) -> Any:
        if not state:
            state.append(_find(declared))
        return crossed(declared, state[0], arguments)

    call.__name__ = declared.name
    call.purple_name = declared.name  # type: ignore[attr-defined]
    return call


def crossed(declared: core.Ffi, found: Any, arguments: tuple[Any, ...]) -> Any:
    """What the function gives for Purple's values."""
    if not _takes_tensors(declared):
        passed = [_to_c(declared.name, *each) for each in zip(declared.parameters, arguments)]
        return _from_c(declared, found(*passed))
    crossing = foreign_tensors.Crossing(declared.name, declared.result, arguments)
    passed = [
        crossing.passed(parameter, value)
        if parameter.type == "tensor"
        else _to_c(declared.name, parameter, value)
        for parameter, value in zip(declared.parameters, arguments)
    ]
    result = crossing.call(found, passed)
    return result if declared.result.type == "tensor" else _from_c(declared, result)


def _takes_tensors(declared: core.Ffi) -> bool:
    return any(crosses.type == "tensor" for crosses in (*declared.parameters, declared.result))


def _find(declared: core.Ffi) -> Any:
    named = declared.library
    of_libtenfold = named is None and declared.symbol.startswith("tn_")
    if of_libtenfold or _takes_tensors(declared):
        loaded = foreign_tensors.library()  # before those that call it
    if of_libtenfold:
        named = loaded.library._name
    if named is not None and "/" not in named and ".so" not in named:
        named = ctypes.util.find_library(named) or named
    try:
        library = ctypes.CDLL(named)
    except OSError:
        missing = f"{declared.name}: there is no library {declared.library}"
        raise PurpleError(missing, "foreign", declared.place) from None
    try:
        found = library[declared.symbol]
    except AttributeError:
        where = declared.library or ("libtenfold" if of_libtenfold else "the C library")
        lacking = f"{declared.name}: {where} has no function {declared.symbol}"
        help = "name its library by :library"
        raise PurpleError(lacking, "foreign", declared.place, help=help) from None
    found.argtypes = [_crossing(parameter) for parameter in declared.parameters]
    found.restype = _crossing(declared.result)
    return found


def _crossing(passed: core.Passed) -> Any:
    """The C type of what crosses over. A string that its receiver frees must keep its address."""
    return ctypes.c_void_p if passed == ("string", True) else CTYPES[passed.type]


def _to_c(name: str, passed: core.Passed, value: Any) -> Any:
    kind = passed.type
    if kind == "int":
        return want_int(name, value)
    if kind == "int32":
        if not -(1 << 31) <= want_int(name, value) < 1 << 31:
            raise PurpleError(f"{name}: {value} does not fit in 32 bits", "foreign")
        return value
    if kind in ("float", "float32"):
        return to_float(want_number(name, value))
    if kind == "bool":
        return value is not False and value is not NIL
    if kind == "string":
        if "\0" in want_string(name, value):
            raise PurpleError(f"{name}: a string for C cannot hold a NUL character", "foreign")
        return _c_library.strdup(value.encode()) if passed.owned else value.encode()
    if value is NIL:
        return None
    if type(value) is not Pointer:
        wrong_type(name, "pointer", value)
    return value.address


def _from_c(declared: core.Ffi, value: Any) -> Any:
    kind = declared.result.type
    if kind == "void":
        return UNSPECIFIED
    if kind == "pointer":
        return Pointer(value) if value else NIL
    if kind == "string":
        if not value:
            return NIL
        text = ctypes.string_at(value) if declared.result.owned else value
        if declared.result.owned:
            _c_library.free(value)
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise PurpleError(f"{declared.name}: the text is not valid UTF-8", "foreign") from None
    return value


_c_library = ctypes.CDLL(None)
_c_library.strdup.argtypes, _c_library.strdup.restype = [ctypes.c_char_p], ctypes.c_void_p
_c_library.free.argtypes, _c_library.free.restype = [ctypes.c_void_p], None
