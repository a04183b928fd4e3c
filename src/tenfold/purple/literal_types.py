"""The types of literals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tenfold.purple.anf_calls import ABSENT
from tenfold.purple.anf_variables import UNDEFINED
from tenfold.purple.numerals import LARGEST, SMALLEST
from tenfold.purple.values import NIL, UNSPECIFIED, Char, Keyword, Pair, Symbol


def type_of_literal(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if value is NIL or value is UNSPECIFIED:
        return "nil" if value is NIL else "void"
    if value is ABSENT or value is UNDEFINED:
        return "any"
    if isinstance(value, int):
        return "int" if SMALLEST <= value <= LARGEST else "integer"
    for kind, name in (
        (Fraction, "number"),
        (float, "float"),
        (str, "string"),
        (Char, "char"),
        (Symbol, "symbol"),
        (Keyword, "keyword"),
        (Pair, "pair"),
        (list, "vector"),
        (bytearray, "bytevector"),
    ):
        if isinstance(value, kind):
            return name
    return "any"
