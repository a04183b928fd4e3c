"""Bytevectors, which are Python's bytearrays, and what turns them into text and back."""

from __future__ import annotations

from typing import Any

from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.prims.registry import in_range, part, primitive, want, want_int, want_string
from tenfold.purple.values import UNSPECIFIED

primitive("bytevector?")(lambda value: type(value) is bytearray)


def want_bytes(name: str, value: Any) -> bytearray:
    return want(name, "bytevector", bytearray, value)


def want_byte(name: str, value: Any) -> int:
    if not 0 <= want_int(name, value) <= 255:
        raise PurpleError(messages.no_byte(name, value), "index")
    return value


@primitive("bytevector")
def bytevector(*items: Any) -> bytearray:
    return bytearray(want_byte("bytevector", item) for item in items)


@primitive("make-bytevector")
def make_bytevector(count: Any, fill: Any = 0) -> bytearray:
    if want_int("make-bytevector", count) < 0:
        raise PurpleError(f"make-bytevector: {count} is no length", "index")
    return bytearray([want_byte("make-bytevector", fill)]) * count


@primitive("bytevector-length")
def bytevector_length(items: Any) -> int:
    return len(want_bytes("bytevector-length", items))


@primitive("bytevector-u8-ref")
def bytevector_ref(items: Any, index: Any) -> int:
    want_bytes("bytevector-u8-ref", items)
    return items[in_range("bytevector-u8-ref", index, len(items))]


@primitive("bytevector-u8-set!")
def bytevector_set(items: Any, index: Any, value: Any) -> Any:
    want_bytes("bytevector-u8-set!", items)
    at = in_range("bytevector-u8-set!", index, len(items))
    items[at] = want_byte("bytevector-u8-set!", value)
    return UNSPECIFIED


@primitive("bytevector-copy")
def bytevector_copy(items: Any, start: Any = None, end: Any = None) -> bytearray:
    return part("bytevector-copy", want_bytes("bytevector-copy", items), start, end)


@primitive("bytevector-append")
def bytevector_append(*parts: Any) -> bytearray:
    return bytearray().join([want_bytes("bytevector-append", part) for part in parts])


@primitive("utf8->string")
def utf8_to_string(items: Any, start: Any = None, end: Any = None) -> str:
    try:
        return part("utf8->string", want_bytes("utf8->string", items), start, end).decode("utf-8")
    except UnicodeDecodeError:
        raise PurpleError("utf8->string: not valid UTF-8", "read") from None


@primitive("string->utf8")
def string_to_utf8(text: Any, start: Any = None, end: Any = None) -> bytearray:
    return bytearray(part("string->utf8", want_string("string->utf8", text), start, end).encode("utf-8"))
