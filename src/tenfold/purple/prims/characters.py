"""Classes and cases of characters, of all of Unicode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.purple.prims.registry import primitive, want, want_string
from tenfold.purple.unicode_tables import digit_value, is_whitespace, one
from tenfold.purple.values import Char


def _class(name: str, is_one: Callable[[str], bool]) -> None:
    primitive(name)(lambda char: is_one(chr(want(name, "char", Char, char).code)))


_class("char-alphabetic?", str.isalpha)
_class("char-numeric?", lambda character: digit_value(character) is not None)
_class("char-whitespace?", is_whitespace)
_class("char-upper-case?", str.isupper)
_class("char-lower-case?", str.islower)


@primitive("digit-value")
def value_of_digit(char: Any) -> int | bool:
    value = digit_value(chr(want("digit-value", "char", Char, char).code))
    return False if value is None else value


def _case(word: str, change: Callable[[str], str]) -> None:
    """`char-upcase` and `string-upcase`. Strings change letter by letter, whatever stands beside each."""

    def of_char(char: Any) -> Char:
        character = chr(want(f"char-{word}", "char", Char, char).code)
        return Char(ord(one(change(character), character)))

    primitive(f"char-{word}")(of_char)
    primitive(f"string-{word}")(lambda text: "".join(map(change, want_string(f"string-{word}", text))))


_case("upcase", str.upper)
_case("downcase", str.lower)
_case("foldcase", str.casefold)
