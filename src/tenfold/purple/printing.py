"""How values look: `display_text` for people, `write_text` as the reader takes them. Without recursion."""

from __future__ import annotations

import math
from typing import Any

from tenfold.purple.messages import SHOWN
from tenfold.purple.reader import CHARACTERS, needs_bars
from tenfold.purple.values import (
    NIL,
    UNSPECIFIED,
    Box,
    Char,
    ErrorValue,
    Keyword,
    Pair,
    Pointer,
    Record,
    Symbol,
    Table,
    Values,
)
from tenfold.tensor import Tensor

NAMED = {code: name for name, code in CHARACTERS.items() if name != "null"}
ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"', "\0": "\\0"}
PROCEDURE_NAMES: dict[str, str] = {}  # by the names that the interpreter gives to Python's functions


def procedure_name(value: Any) -> str:
    python_name = getattr(value, "__name__", "procedure")
    return getattr(value, "purple_name", None) or PROCEDURE_NAMES.get(python_name, python_name)


def display_text(value: Any) -> str:
    return value if type(value) is str else _text(value, False)


def write_text(value: Any) -> str:
    return _text(value, True)


def brief(value: Any) -> str:
    """The value as a message shows it."""
    text = _text(value, True, limit=SHOWN)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def float_text(value: float) -> str:
    """The shortest text that reads back as the same float; an exponent below -4 or from 16 on is written
    out.
    """
    if not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def write_char(code: int) -> str:
    if code in NAMED:
        return "#\\" + NAMED[code]
    invisible = code < 32 or 127 <= code <= 160
    return "#\\" + (f"x{code:x}" if invisible else chr(code))


def write_symbol(name: str) -> str:
    if not needs_bars(name):
        return name
    return "|" + write_string(name)[1:-1].replace('\\"', '"').replace("|", "\\|") + "|"


def write_string(text: str) -> str:
    def escape(each: str) -> str:
        if each in ESCAPED:
            return ESCAPED[each]
        return each if ord(each) >= 32 and ord(each) != 127 else f"\\u{{{ord(each):x}}}"

    return '"' + "".join(map(escape, text)) + '"'


def _text(value: Any, quoted: bool, limit: int | None = None) -> str:
    text = _shown(value, quoted, limit, None)
    return _shown(value, quoted, limit, set()) or "" if text is None else text


LONG = 10_000  # parts: what has more may hold itself
CONTAINERS = (Pair, list, Record, Table, Box)


def _shown(value: Any, quoted: bool, limit: int | None, around: set[int] | None) -> str | None:
    """Parts still to be shown lie on a stack: text as it is, values in a tuple of one. `around` are the
    containers under way, by their ids, and a number on the stack is where one ends: what is met again
    inside itself is shown as `…`. Without it, None is given for what is long.
    """
    out: list[str] = []
    size = steps = 0
    stack: list[Any] = [(value,)]
    while stack:
        top = stack.pop()
        if type(top) is str:
            out.append(top)
            size += len(top)
            continue
        if type(top) is int:
            assert around is not None
            around.remove(top)
            continue
        steps += 1
        if around is None and steps > LONG:
            return None
        item = top[0]
        rest = item.rest if type(item) is _Tail else None
        held = item if rest is None else rest
        if around is not None and type(held) in CONTAINERS and (rest is None or type(rest) is Pair):
            if id(held) in around:
                stack.append("…" if rest is None else " . …)")
                continue
            around.add(id(held))
            stack.append(id(held))
        if type(item) is Pair:
            stack += [_tail(item.cdr), (item.car,), "("]
        elif rest is None:
            stack += reversed(_parts(item, quoted))
        elif type(rest) is Pair:
            stack += [_tail(rest.cdr), (rest.car,), " "]
        elif rest is NIL:
            stack.append(")")
        else:
            stack += [")", (rest,), " . "]
        if limit is not None and size > limit:
            break
    return "".join(out)


class _Tail:
    """The rest of a list whose first elements are shown."""

    __slots__ = ("rest",)
    rest: Any


def _tail(rest: Any) -> tuple[_Tail]:
    tail = _Tail()
    tail.rest = rest
    return (tail,)


def _spaced(items: Any) -> list[Any]:
    parts: list[Any] = []
    for item in items:
        parts += [" ", (item,)] if parts else [(item,)]
    return parts


def _parts(item: Any, quoted: bool) -> list[Any]:
    kind = type(item)
    if kind is str:
        return [write_string(item) if quoted else item]
    if kind is bool:
        return ["#t" if item else "#f"]
    if kind is int:
        return [str(item)]
    if kind is float:
        return [float_text(item)]
    if item is NIL:
        return ["()"]
    if item is UNSPECIFIED:
        return ["#<unspecified>"]
    if kind is Symbol:
        return [write_symbol(item.name) if quoted else item.name]
    if kind is Keyword:
        return [":" + item.name]
    if kind is Char:
        return [write_char(item.code) if quoted else chr(item.code)]
    if kind is list:
        return ["#(", *_spaced(item), ")"]
    if kind is Record:
        parts: list[Any] = [f"#<{item.type.shown}"]
        for i, (name, _, weak) in enumerate(item.type.fields):
            # A weak field looks back at what may hold this record: it is not followed.
            parts += [f" {name}: ", "…" if weak else (item.values[i],)]
        return [*parts, ">"]
    if kind is Table:
        entries: list[Any] = []
        for key, value in item.entries.values():
            entries += [" (", (key,), " . ", (value,), ")"]
        return ["#<table", *entries, ">"]
    if kind is Box:
        return ["#<box ", (item.value,), ">"]
    if kind is Values:
        return _spaced(item.items)
    if kind is ErrorValue:
        return [f"#<error {item.message}>"]
    if kind is Pointer:
        return ["#<pointer>"]
    if isinstance(item, Tensor):
        # What computed it is no part of the value: both ways to run print the numbers alone.
        return [repr(item.detach())]
    if callable(item):
        return [f"#<procedure {procedure_name(item)}>"]
    raise TypeError(f"{kind.__name__} is no value of Purple")
