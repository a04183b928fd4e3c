"""Literals in C: immediates stand where they are used; objects are made once, when the program starts, in a
table."""

from __future__ import annotations

import math
from typing import Any

from tenfold.purple.anf_calls import ABSENT
from tenfold.purple.anf_variables import UNDEFINED
from tenfold.purple.ir import BOOL, FLOAT, INT
from tenfold.purple.values import NIL, UNSPECIFIED, Char, Keyword, Pair, Symbol

FIXNUM = 2**62


def c_string(text: str) -> str:
    """A C string literal of the text in UTF-8; a hexadecimal escape would swallow digits that follow, an
    octal one ends."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        if byte == 0x22 or byte == 0x5C:
            out.append("\\" + chr(byte))
        elif byte == 0x0A:
            out.append("\\n")
        elif 0x20 <= byte < 0x7F and byte != 0x3F:
            out.append(chr(byte))
        else:
            out.append(f"\\{byte:03o}")  # a question mark too: three of them may spell a trigraph
    return '"' + "".join(out) + '"'


def c_int(number: int) -> str:
    return "INT64_MIN" if number == -(2**63) else f"INT64_C({number})"


def c_float(number: float) -> str:
    if math.isnan(number):
        return "(double)NAN"
    if math.isinf(number):
        return "HUGE_VAL" if number > 0 else "-HUGE_VAL"
    return repr(number) if number >= 0 and not math.copysign(1, number) < 0 else f"({number!r})"


def plain(value: Any, rep: str) -> str:
    """A literal as a C number or truth value."""
    if rep == INT:
        return c_int(value)
    if rep == FLOAT:
        return c_float(float(value))
    assert rep == BOOL
    return "true" if value else "false"


def immediate(value: Any) -> str | None:
    """A literal that needs no object."""
    if isinstance(value, bool):
        return "PU_TRUE" if value else "PU_FALSE"
    if isinstance(value, int):
        return f"pu_of_fixnum({value})" if -FIXNUM <= value < FIXNUM else None
    if isinstance(value, Char):
        return f"pu_of_char({value.code})"
    if value is ABSENT or value is UNDEFINED:
        return "PU_ABSENT" if value is ABSENT else "PU_UNDEFINED"
    if value is NIL or value is UNSPECIFIED:
        return "PU_NIL" if value is NIL else "PU_UNSPECIFIED"
    return None


class Constants:
    """The table, and the C that fills it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._slots: dict[Any, str] = {}
        self._held: list[Any] = []  # keeps ids from being used again

    def value(self, value: Any) -> str:
        """C for a literal as a Value, borrowed from the table if it is an object."""
        direct = immediate(value)
        if direct is not None:
            return direct
        key = self._key(value)
        found = self._slots.get(key)
        if found is None:
            made = self._made(value)
            found = self._slots[key] = f"constant[{len(self.lines)}]"
            self.lines.append(f"{found} = {made};")
            self._held.append(value)
        return found

    def _key(self, value: Any) -> Any:
        if isinstance(value, float):
            return float, repr(value)
        return (type(value), value) if isinstance(value, int | str | Symbol | Keyword) else id(value)

    def _made(self, value: Any) -> str:
        made: Any = value
        match made:
            case int():
                return f"pu_box_int({c_int(value)})"
            case float():
                return f"pu_of_float({c_float(value)})"
            case str():
                return f"pu_string({c_string(value)}, {len(value.encode('utf-8', 'surrogatepass'))})"
            case Symbol() | Keyword():
                kind = "SYMBOL" if isinstance(value, Symbol) else "KEYWORD"
                return f"pu_intern(PU_{kind}, {c_string(value.name)})"
            case Pair():
                items, rest = [], value
                while isinstance(rest, Pair):
                    items.append(self._part(rest.car))
                    rest = rest.cdr
                return f"pu_list_onto({_array(items)}, {len(items)}, {self._part(rest)})"
            case list():
                items = [self._part(each) for each in value]
                return f"pu_vector({_array(items)}, {len(items)})"
        raise TypeError(f"no literal: {value!r}")

    def _part(self, value: Any) -> str:
        return immediate(value) or f"pu_dup({self.value(value)})"


def _array(items: list[str]) -> str:
    return f"(Value[]){{{', '.join(items)}}}" if items else "NULL"
