"""Errors, several values, input and output, files, and the world around the program."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, NoReturn

from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.prims.registry import primitive, want, want_int, want_list, want_string, wrong_type
from tenfold.purple.printing import brief, write_text
from tenfold.purple.values import UNSPECIFIED, ErrorValue, Pair, Symbol, Values, list_of

command_line: list[str] = []  # what `(command-line)` gives; set by whoever runs a program

primitive("procedure?")(lambda value: callable(value))
primitive("error?")(lambda value: type(value) is ErrorValue)
primitive("clock")(lambda: time.perf_counter())
primitive("command-line")(lambda: list_of(command_line))


@primitive("values")
def values(*items: Any) -> Any:
    return items[0] if len(items) == 1 else Values(list(items))


@primitive("%values->vector")
def values_to_vector(bundle: Any, count: int) -> list[Any]:
    items = bundle.items if type(bundle) is Values else [bundle]
    if len(items) < -count - 1 if count < 0 else len(items) != count:
        raise PurpleError(messages.wrong_values(count, len(items)), "arity")
    return items


@primitive("error")
def error(message: Any, *irritants: Any) -> NoReturn:
    want_string("error", message)
    text = " ".join([message, *map(write_text, irritants)])
    raise PurpleError(text, "error", irritants=list_of(irritants))


@primitive("raise")
def raise_(value: Any) -> NoReturn:
    if type(value) is ErrorValue:
        origin = value.origin
        again = PurpleError(value.message, value.kind, value=value)
        if origin is not None:
            again.place, again.stack, again.notes = origin.place, origin.stack, origin.notes
            again.help, again.blamed, again.again = origin.help, origin.blamed, bool(origin.place.line)
        raise again
    raise PurpleError(messages.uncaught(brief(value)), "raise", value=value)


@primitive("%fail-as")
def fail_as(kind: Any, message: Any) -> NoReturn:
    name = want("%fail-as", "symbol", Symbol, kind).name
    raise PurpleError(want_string("%fail-as", message), name)


@primitive("%match-failed")
def match_failed(value: Any) -> NoReturn:
    raise PurpleError(messages.no_match(brief(value)), "match")


@primitive("error-message")
def error_message(error: Any) -> str:
    return want("error-message", "error", ErrorValue, error).message


@primitive("error-place")
def error_place(error: Any) -> str:
    return want("error-place", "error", ErrorValue, error).place


@primitive("error-kind")
def error_kind(error: Any) -> Symbol:
    return Symbol(want("error-kind", "error", ErrorValue, error).kind)


@primitive("error-irritants")
def error_irritants(error: Any) -> Any:
    return want("error-irritants", "error", ErrorValue, error).irritants


class Exit(BaseException):
    """The program asked to end."""

    def __init__(self, status: int):
        self.status = status


@primitive("exit")
def exit_(status: Any = 0) -> NoReturn:
    raise Exit(want_int("exit", status) & 255)


@primitive("%complain")
def complain(text: Any) -> Any:
    sys.stdout.flush()
    sys.stderr.write(want_string("%complain", text) + "\n")
    return UNSPECIFIED


def _file_error(name: str, path: str, problem: OSError | ValueError) -> PurpleError:
    reason = getattr(problem, "strerror", None) or "the path holds a NUL character"
    return PurpleError(f"{name}: {path}: {reason}", "file")


@primitive("read-file")
def read_file(path: Any) -> str:
    want_string("read-file", path)
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except UnicodeDecodeError:
        raise PurpleError(f"read-file: {path}: not valid UTF-8", "file") from None
    except (OSError, ValueError) as problem:
        raise _file_error("read-file", path, problem) from None


def _write(name: str, path: Any, text: Any, mode: str) -> Any:
    want_string(name, path)
    want_string(name, text)
    try:
        with open(path, mode) as file:
            file.write(text.encode("utf-8"))
    except (OSError, ValueError) as problem:
        raise _file_error(name, path, problem) from None
    return UNSPECIFIED


primitive("write-file")(lambda path, text: _write("write-file", path, text, "wb"))
primitive("append-file")(lambda path, text: _write("append-file", path, text, "ab"))


@primitive("file-exists?")
def file_exists(path: Any) -> bool:
    return os.path.exists(want_string("file-exists?", path))


@primitive("delete-file")
def delete_file(path: Any) -> Any:
    try:
        os.remove(want_string("delete-file", path))
    except (OSError, ValueError) as problem:
        raise _file_error("delete-file", path, problem) from None
    return UNSPECIFIED


@primitive("%environment")
def environment() -> Any:
    return list_of([Pair(name, content) for name, content in os.environ.items()])


primitive("current-second")(lambda: time.time())


@primitive("getenv")
def getenv(name: Any) -> str | bool:
    found = os.environ.get(want_string("getenv", name))
    return False if found is None else found


def spread(*arguments: Any) -> tuple[Any, ...]:
    """The arguments of `apply`, the last of which is a list of more."""
    return (*arguments[:-1], *want_list("apply", arguments[-1]))


def want_procedure(name: str, value: Any) -> Any:
    if not callable(value):
        wrong_type(name, "procedure", value)
    return value
