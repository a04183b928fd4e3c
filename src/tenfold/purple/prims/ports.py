"""Output, and what of ports is native: where output goes, files that are written, and the terminal's input.
A port itself is a record of `ports.purple`, whose fields stand here in the same order."""

from __future__ import annotations

import sys
from typing import IO, Any

from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.prims.bytevectors import want_byte
from tenfold.purple.prims.registry import primitive, want_string, wrong_type
from tenfold.purple.printing import display_text, shared_text, write_text
from tenfold.purple.values import UNSPECIFIED, Pair, Record, Symbol

DIRECTION, BINARY, OPEN, SOURCE, REST = range(5)
OUT, ERR = Symbol("out"), Symbol("err")


class State:
    """The port that output goes to (None: the terminal), and the files that are open, by handle."""

    output: Record | None = None
    files: list[IO[bytes] | None] = []


def is_port(value: Any) -> bool:
    return type(value) is Record and value.type.name == "prelude::port"


def _taken(name: str, port: Any, binary: bool) -> list[Any]:
    """The fields of a port that can be written to, and is of this sort."""
    if not is_port(port):
        wrong_type(name, "port", port)
    fields = port.values
    if fields[DIRECTION] is not OUT:
        raise PurpleError(messages.port_is_for(name, "input"), "type")
    if fields[BINARY] is not binary:
        raise PurpleError(messages.port_is_for(name, "text" if binary else "bytes"), "type")
    if fields[OPEN] is not True:
        raise PurpleError(messages.port_is_closed(name), "file")
    return fields


def _put(name: str, fields: list[Any], item: Any, content: bytes) -> Any:
    """Output goes through sys.stdout, which whoever runs the program may have replaced."""
    source = fields[SOURCE]
    if source is False:
        fields[REST] = Pair(item, fields[REST])
    elif source is OUT or source is ERR:
        stream = sys.stdout if source is OUT else sys.stderr
        stream.write(content.decode("utf-8", "replace"))
    else:
        file = State.files[source]
        if file is None:
            raise PurpleError(messages.port_is_closed(name), "file")
        file.write(content)
    return UNSPECIFIED


def send(name: str, text: str, port: Any = None) -> Any:
    if port is None:
        port = State.output
    if port is None:
        sys.stdout.write(text)
        return UNSPECIFIED
    return _put(name, _taken(name, port, False), text, text.encode("utf-8"))


def _put_values(name: str, items: tuple[Any, ...], between: str, after: str) -> Any:
    port = None
    if len(items) > 1 and is_port(items[-1]):
        *items, port = items  # type: ignore[assignment]
    return send(name, between.join(map(display_text, items)) + after, port)


primitive("display")(lambda *items: _put_values("display", items, "", ""))
primitive("print")(lambda *items: _put_values("print", items, " ", "\n"))
primitive("write")(lambda value, port=None: send("write", write_text(value), port))
primitive("write-shared")(lambda value, port=None: send("write-shared", shared_text(value), port))
primitive("newline")(lambda port=None: send("newline", "\n", port))
primitive("display->string")(lambda value: display_text(value))
primitive("write->string")(lambda value: write_text(value))
primitive("%send")(lambda text, port=None: send("write-string", want_string("write-string", text), port))
primitive("%output-port")(lambda: State.output or False)


@primitive("%send-byte")
def send_byte(byte: Any, port: Any) -> Any:
    content = bytes([want_byte("write-u8", byte)])
    return _put("write-u8", _taken("write-u8", port, True), byte, content)


@primitive("%set-output!")
def set_output(port: Any) -> Any:
    fields = _taken("current-output-port", port, False)
    State.output = None if fields[SOURCE] is OUT else port
    return UNSPECIFIED


def _path_error(name: str, path: str, problem: OSError | ValueError) -> PurpleError:
    reason = getattr(problem, "strerror", None) or "the path holds a NUL character"
    return PurpleError(f"{name}: {path}: {reason}", "file")


@primitive("%open-output")
def open_output(path: Any, mode: Any) -> int:
    want_string("open-output-file", path)
    try:
        State.files.append(open(path, want_string("open-output-file", mode)))  # noqa: SIM115
    except (OSError, ValueError) as problem:
        raise _path_error("open-output-file", path, problem) from None
    return len(State.files) - 1


@primitive("%close-output")
def close_output(handle: Any) -> Any:
    file = State.files[handle] if type(handle) is int else None
    if file is not None:
        file.close()
        State.files[handle] = None
    return UNSPECIFIED


@primitive("%flush-output")
def flush_output(handle: Any) -> Any:
    file = State.files[handle] if type(handle) is int else None
    (sys.stdout if file is None else file).flush()
    return UNSPECIFIED


@primitive("%read-bytes")
def read_bytes(path: Any) -> bytearray:
    want_string("open-binary-input-file", path)
    try:
        with open(path, "rb") as file:
            return bytearray(file.read())
    except (OSError, ValueError) as problem:
        raise _path_error("open-binary-input-file", path, problem) from None


@primitive("%console-line")
def console_line() -> str | bool:
    sys.stdout.flush()
    return sys.stdin.readline() or False
