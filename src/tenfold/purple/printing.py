"""How values look: `display_text` for people, `write_text` as the reader takes them. Without recursion."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tenfold.purple.messages import SHOWN
from tenfold.purple.numerals import decimal_text
from tenfold.purple.reader import CHARACTERS, needs_bars
from tenfold.purple.values import (
    NIL,
    UNSPECIFIED,
    Box,
    Char,
    Environment,
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
        return "+nan.0" if value != value else "+inf.0" if value > 0 else "-inf.0"
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
        return each if ord(each) >= 32 and ord(each) != 127 else f"\\x{ord(each):x};"

    return '"' + "".join(map(escape, text)) + '"'


def _text(value: Any, quoted: bool, limit: int | None = None) -> str:
    text = _shown(value, quoted, limit, None)
    return _shown(value, quoted, limit, _Labels(value, False)) or "" if text is None else text


def shared_text(value: Any) -> str:
    """As `write-shared` shows it: with labels for all that is met twice."""
    return _shown(value, True, None, _Labels(value, True)) or ""


LONG = 10_000  # parts: what has more may hold itself
CONTAINERS = (Pair, list, Record, Table, Box)


class _Labels:
    """Which parts of a value are shown with a label: those met again inside themselves, or all met twice.
    `numbers` are theirs by id; -1 until the first is shown."""

    def __init__(self, value: Any, shared: bool):
        self.numbers: dict[int, int] = {}
        self.used = 0
        under_way: dict[int, bool] = {}
        stack: list[Any] = [(value,)]
        while stack:
            top = stack.pop()
            if type(top) is int:  # the end of a container
                under_way[top] = False
                continue
            item = top[0]
            if type(item) not in CONTAINERS:
                continue
            if id(item) not in under_way:
                under_way[id(item)] = True
                stack.append(id(item))
                stack += [(each,) for each in reversed(_held(item))]
            elif shared or under_way[id(item)]:
                self.numbers[id(item)] = -1

    def of(self, item: Any) -> tuple[str, bool]:
        """The label to be shown, and whether what it stands for follows it."""
        number = self.numbers.get(id(item)) if type(item) in CONTAINERS else None
        if number is None:
            return "", True
        if number >= 0:
            return f"#{number}#", False
        self.numbers[id(item)] = self.used
        self.used += 1
        return f"#{self.used - 1}=", True


def _held(item: Any) -> list[Any]:
    """What a container holds, in the order in which it is shown; weak fields are not followed."""
    if type(item) is Pair:
        return [item.car, item.cdr]
    if type(item) is Record:
        return [value for value, field in zip(item.values, item.type.fields) if not field.weak]
    if type(item) is Table:
        return [part for entry in item.entries.values() for part in entry]
    return item if type(item) is list else [item.value]


def _shown(value: Any, quoted: bool, limit: int | None, labels: _Labels | None) -> str | None:
    """Parts still to be shown lie on a stack: text as it is, values in a tuple of one. Without labels, None
    is given for what is long."""
    out: list[str] = []
    size = steps = 0
    stack: list[Any] = [(value,)]
    while stack:
        top = stack.pop()
        if type(top) is str:
            out.append(top)
            size += len(top)
            continue
        steps += 1
        if labels is None and steps > LONG:
            return None
        item = top[0]
        rest = item.rest if type(item) is _Tail else None
        label, follows = ("", True) if labels is None else labels.of(item if rest is None else rest)
        if rest is not None and label:  # a rest that has a label is shown after a dot
            out.append(f" . {label}")
            stack += [")", _tail(rest.cdr), (rest.car,), "("] if follows else [")"]
        elif not follows:
            out.append(label)
        elif type(item) is Pair:
            stack += [_tail(item.cdr), (item.car,), label + "("]
        elif rest is None:
            stack += [*reversed(_parts(item, quoted)), label]
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
        return [decimal_text(item)]
    if kind is Fraction:
        return [f"{decimal_text(item.numerator)}/{decimal_text(item.denominator)}"]
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
    if kind is bytearray:
        return ["#u8(" + " ".join(map(str, item)) + ")"]
    if kind is Record:
        parts: list[Any] = [f"#<{item.type.shown}"]
        for i, (name, _, weak) in enumerate(item.type.fields):
            if name.startswith("%"):  # private
                continue
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
    if kind is Pointer or kind is Environment:
        return [f"#<{kind.__name__.lower()}>"]
    if isinstance(item, Tensor):
        # What computed it is no part of the value: both ways to run print the numbers alone.
        return [repr(item.detach())]
    if callable(item):
        return [f"#<procedure {procedure_name(item)}>"]
    raise TypeError(f"{kind.__name__} is no value of Purple")
