"""Foreign functions through ctypes: what `ffi-declare` names, as a function on Purple's values."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from typing import Any

from tenfold.purple import core
from tenfold.purple.errors import PurpleError
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
    "void": None,
}


def function(declared: core.Ffi) -> Callable[..., Any]:
    """The foreign function, found when it is first called."""
    state: list[Any] = []

    def call(*arguments: Any) -> Any:
        if not state:
            state.append(_find(declared))
        passed = [
            _to_c(declared.name, each.type, value) for each, value in zip(declared.parameters, arguments)
        ]
        return _from_c(declared, state[0](*passed))

    call.__name__ = declared.name
    call.purple_name = declared.name  # type: ignore[attr-defined]
    return call


def _find(declared: core.Ffi) -> Any:
    if any(each.type == "tensor" for each in (*declared.parameters, declared.result)):
        raise PurpleError(
            f"{declared.name}: foreign functions on tensors run in compiled programs alone",
            "foreign",
            help="use purple build",
        )
    try:
        library = ctypes.CDLL(declared.library)
    except OSError as error:
        raise PurpleError(f"{declared.name}: cannot load {declared.library}: {error}", "foreign") from None
    try:
        found = library[declared.symbol]
    except AttributeError:
        where = declared.library or "the C library"
        raise PurpleError(f"{declared.name}: {where} has no function {declared.symbol}", "foreign") from None
    found.argtypes = [CTYPES[each.type] for each in declared.parameters]
    # A string that is ours to free must keep its address.
    owned = declared.result.type == "string" and declared.result.owned
    found.restype = ctypes.c_void_p if owned else CTYPES[declared.result.type]
    return found


def _to_c(name: str, kind: str, value: Any) -> Any:
    if kind == "int":
        return want_int(name, value)
    if kind == "int32":
        if not -(1 << 31) <= want_int(name, value) < 1 << 31:
            raise PurpleError(f"{name}: {value} does not fit in 32 bits", "foreign")
        return value
    if kind in ("float", "float32"):
        return float(want_number(name, value))
    if kind == "bool":
        return value is not False and value is not NIL
    if kind == "string":
        if "\0" in want_string(name, value):
            raise PurpleError(f"{name}: a string for C cannot hold a NUL character", "foreign")
        return value.encode("utf-8")
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
            free = ctypes.CDLL(None).free
            free.argtypes = [ctypes.c_void_p]
            free(value)
        return text.decode("utf-8", "replace")
    return value
