"""Literals in C: immediates stand where they are used; objects are made once, when the program starts, in a
table."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tenfold.purple.anf_calls import ABSENT
from tenfold.purple.anf_variables import UNDEFINED
from tenfold.purple.ir import BOOL, FLOAT, INT
from tenfold.purple.numerals import LARGEST, SMALLEST
from tenfold.purple.printing import display_text
from tenfold.purple.values import NIL, UNSPECIFIED, Char, Keyword, Pair, Symbol

FIXNUM = 2**62


def c_string(text: str) -> str:
    """A C string literal of the text in UTF-8."""
    return c_bytes(text.encode("utf-8", "surrogatepass"))


def c_bytes(content: bytes | bytearray) -> str:
    """A C string literal; a hexadecimal escape would swallow digits that follow, an
    octal one ends."""
    out = []
    for byte in content:
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
    """The table, and how it is filled: `steps[i]` are the `PuStep`s that make `constant[i]`, which may look
    at those before it. They are data, because C compilers take long over as many statements.

    A list, a vector or a bytevector is one object wherever the program mentions it: of several C files, the
    first that has it makes it for all. `makers` are those by the object's id, `unit` is this file's name."""

    def __init__(self, makers: dict[int, Constants], unit: str) -> None:
        self.makers, self.unit = makers, unit
        self.steps: list[list[str]] = []
        self._slots: dict[Any, int] = {}
        self._held: list[Any] = []  # keeps ids from being used again

    def value(self, value: Any) -> str:
        """C for a literal as a Value, borrowed from the table if it is an object."""
        maker = self.makers.get(id(value), self)
        table = "constant" if maker is self else f"literals_of_{maker.unit}"
        return immediate(value) or f"{table}[{maker._slot(value)}]"

    def definitions(self) -> list[str]:
        """The table, and the steps, in C."""
        rows = ["    " + " ".join([*steps, "{'=', 0, NULL},"]) for steps in self.steps]
        steps = ["static const PuStep literals[] = {", *rows, "};"] if rows else []
        return [f"static Value constant[{max(1, len(rows))}];", *steps]

    def _slot(self, value: Any) -> int:
        key = self._key(value)
        found = self._slots.get(key)
        if found is None:
            steps = self._made(value)
            found = self._slots[key] = len(self.steps)
            if isinstance(value, Pair | list | bytearray):
                self.makers.setdefault(id(value), self)
            self.steps.append(steps)
            self._held.append(value)
        return found

    def _key(self, value: Any) -> Any:
        if isinstance(value, float):
            return float, repr(value)
        return (
            (type(value), value) if isinstance(value, int | Fraction | str | Symbol | Keyword) else id(value)
        )

    def _made(self, value: Any) -> list[str]:
        made: Any = value
        match made:
            case int() | Fraction():
                return [_number(value)]
            case float():
                return [_step("f", 0, repr(value))]
            case str():
                return [_step("s", len(value.encode("utf-8", "surrogatepass")), value)]
            case Symbol() | Keyword():
                kind = "y" if isinstance(value, Symbol) else "k"
                return [_step(kind, len(value.name.encode("utf-8", "surrogatepass")), value.name)]
            case Pair():
                items, rest = [], value
                while isinstance(rest, Pair):
                    items.append(self._part(rest.car))
                    rest = rest.cdr
                return [*items, self._part(rest), _step("(", len(items))]
            case bytearray():
                return [f"{{'b', {len(value)}, {c_bytes(value)}}},"]
            case list():
                return [*map(self._part, value), _step("#", len(value))]
        raise TypeError(f"no literal: {value!r}")

    def _part(self, value: Any) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return _number(value)
        if isinstance(value, Char):
            return _step("c", value.code)
        direct = immediate(value)
        return _step("@", self._slot(value)) if direct is None else _step("v", direct)


def _number(value: int | Fraction) -> str:
    if isinstance(value, int) and SMALLEST <= value <= LARGEST:
        return _step("i", c_int(value))
    text = display_text(value)
    return _step("n", len(text), text)


def _step(what: str, number: int | str, text: str | None = None) -> str:
    return f"{{'{what}', {number}, {'NULL' if text is None else c_string(text)}}},"
