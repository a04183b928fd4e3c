"""From text to data. Every datum remembers its place. No recursion: nesting is as deep as memory allows."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tenfold.purple.core import Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.numerals import Number, TooLarge, is_numeral, numeral
from tenfold.purple.values import NIL, Char, Keyword, Symbol, list_of


class Datum:
    """An atom: a number, a string, a character, a boolean, a keyword or nil."""

    __slots__ = ("place", "value")
    size: int = 1

    def __init__(self, value: Any, place: Place):
        self.value, self.place = value, place


class Name(Datum):
    """A symbol. `value` is its text; `alias` is what the expander knows it by when a macro brought it in."""

    __slots__ = ("alias",)

    def __init__(self, value: str, place: Place, alias: Any = None):
        self.value, self.place, self.alias = value, place, alias

    @property
    def key(self) -> Any:
        return self.alias or self.value


class Sequence(Datum):
    """A list; `tail` is what stands after a dot. `value` is the Python list of its data, and `size` how many
    data it is if those that macros put into several places are counted at each."""

    __slots__ = ("size", "tail")
    value: list[Datum]

    def __init__(self, value: list[Datum], place: Place, tail: Datum | None = None):
        self.value, self.place, self.tail = value, place, tail
        self.size = 1 + sum([each.size for each in value]) + (tail.size if tail else 0)


class Vector(Datum):
    __slots__ = ("size",)
    value: list[Datum]

    def __init__(self, value: list[Datum], place: Place):
        self.value, self.place = value, place
        self.size = 1 + sum([each.size for each in value])


class Incomplete(PurpleError):
    """Text that ends inside a datum: more lines may complete it."""


class _Open(NamedTuple):
    """A datum under way. kind: "(", "#(", "'" and its like, or "#;"."""

    kind: str
    closer: str
    line: int
    column: int
    start: int
    items: list[Datum]
    tail: list[Datum]


TOKEN = re.compile(
    r"""(?P<space>\s+|;[^\n]*)
      | (?P<block>\#\|)
      | (?P<skip>\#;)
      | (?P<open>\#u8\(|\#\(|[(\[])
      | (?P<close>[)\]])
      | (?P<prefix>'|`|,@|,)
      | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<bars>\|[^|\\]*(?:\\.[^|\\]*)*\|)
      | (?P<char>\#\\(?:x[0-9a-fA-F]+(?=[\s()\[\]";']|$)|[a-zA-Z]+(?=[\s()\[\]";']|$)|.))
      | (?P<atom>[^\s()\[\]"';`,|][^\s()\[\]"';`,]*)
    """,
    re.VERBOSE | re.DOTALL,
)
PREFIXES = {"'": "quote", "`": "quasiquote", ",": "unquote", ",@": "unquote-splicing"}
CHARACTERS = {
    "space": 32, "newline": 10, "tab": 9, "return": 13, "nul": 0, "null": 0, "delete": 127, "escape": 27,
    "backspace": 8, "alarm": 7,
}  # fmt: skip
ESCAPES = {
    "|": "|", "n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "0": "\0", "a": "\a", "b": "\b",
    "e": "\x1b",
}  # fmt: skip
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,6};|u\{[0-9a-fA-F]{1,6}\}|[ \t]*\n[ \t]*|.)", re.DOTALL)
NESTED = 200_000  # levels of data
FOLDING = {"#!fold-case": True, "#!no-fold-case": False}


def read_source(path: str) -> str:
    """A program's text. Bytes that are not UTF-8 are an error with the place of the first."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise PurpleError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", "file") from None
    except ValueError:
        raise PurpleError("a path cannot hold a NUL character", "file") from None
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        byte = raw[error.start]
        place = Place(path, line, column, len(before), len(before) + 1)
        raise PurpleError(f"byte 0x{byte:02x} is not valid UTF-8", "read", place) from None


def read_named(path: str, place: Place) -> str:
    """The text of a file that a program names at this place: no pipe or device, which may never end."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise PurpleError(f"cannot read {path}: it is no regular file", "file", place)
    try:
        return read_source(path)
    except PurpleError as error:
        raise error if error.place.line else PurpleError(error.message, "file", place) from None


def read(text: str, file: str = "<text>", folds: bool = False) -> list[Datum]:
    """All data of a text. `folds`: capital letters in names are read as small ones."""
    return Reader(text, file, folds).read()


class Reader:
    def __init__(self, text: str, file: str, folds: bool = False):
        self.text, self.file, self.folds = text, file, folds
        self.line, self.line_start, self.position = 1, 0, 0
        self.top: list[Datum] = []
        self.stack: list[_Open] = []

    def read(self) -> list[Datum]:
        text, end = self.text, len(self.text)
        while self.position < end:
            match = TOKEN.match(text, self.position)
            if match is None:
                self.stuck()
            start, self.position = self.position, match.end()
            kind = match.lastgroup
            if kind == "space":
                self.advance(start)
            elif kind == "block":
                self.skip_block(start)
            else:
                self.token(str(kind), match.group(), start)
                if kind in ("string", "char", "bars"):
                    self.advance(start)
        if self.stack:
            opened = self.stack[-1]
            place = self.at(opened)
            if opened.closer:
                raise Incomplete(f"this {opened.kind} is never closed", "read", place)
            raise Incomplete(f"nothing follows this {opened.kind}", "read", place)
        return self.top

    def token(self, kind: str, word: str, start: int) -> None:
        if kind == "open" or kind in ("prefix", "skip"):
            closer = {"(": ")", "[": "]"}.get(word[-1], "") if kind == "open" else ""
            if len(self.stack) >= NESTED:
                place = Place(self.file, self.line, start - self.line_start + 1, start, self.position)
                raise PurpleError(f"data are nested too deeply: more than {NESTED:,} levels", "read", place)
            self.stack.append(_Open(word, closer, self.line, start - self.line_start + 1, start, [], []))
            return
        place = Place(self.file, self.line, start - self.line_start + 1, start, self.position)
        if kind == "close":
            self.close(word, place)
        elif kind == "string":
            self.add(Datum(self.unescape(word, place), place))
        elif kind == "bars":
            self.add(Name(self.unescape(word, place), place))
        elif kind == "char":
            self.add(Datum(self.character(word[2:], place), place))
        elif word == ".":
            self.dot(place)
        elif word in FOLDING:
            self.folds = FOLDING[word]
        else:
            self.add(self.atom(word, place))

    def add(self, datum: Datum) -> None:
        """Give a finished datum to what it stands in; finish those that take just one."""
        while self.stack:
            opened = self.stack[-1]
            if opened.closer:
                if not opened.tail:
                    opened.items.append(datum)
                elif len(opened.tail) == 1:
                    opened.tail.append(datum)
                else:
                    raise PurpleError("only one datum may follow the dot", "read", datum.place)
                return
            self.stack.pop()
            if opened.kind == "#;":
                return
            place = self.at(opened, datum.place.end)
            datum = Sequence([Name(PREFIXES[opened.kind], place), datum], place)
        self.top.append(datum)

    def close(self, word: str, place: Place) -> None:
        if not self.stack:
            raise PurpleError(f"this {word} closes nothing", "read", place)
        opened = self.stack.pop()
        if not opened.closer:
            raise PurpleError(f"nothing follows this {opened.kind}", "read", self.at(opened))
        if word != opened.closer:
            raise PurpleError(f"this {word} cannot close a {opened.kind}", "read", place).note(
                f"the {opened.kind} is here", self.at(opened)
            )
        whole = self.at(opened, self.position)
        if opened.kind == "#(":
            self.add(Vector(opened.items, whole))
        elif opened.kind == "#u8(":
            self.add(Datum(self.bytes_of(opened.items), whole))
        elif len(opened.tail) == 1:
            raise PurpleError("nothing follows the dot", "read", opened.tail[0].place)
        elif not opened.items:
            self.add(Datum(NIL, whole))
        else:
            tail = opened.tail[1] if opened.tail else None
            self.add(_joined(opened.items, tail, whole))

    def bytes_of(self, items: list[Datum]) -> bytearray:
        for item in items:
            if type(item.value) is not int or not 0 <= item.value < 256:
                raise PurpleError("a bytevector holds integers from 0 to 255", "read", item.place)
        return bytearray(item.value for item in items)

    def dot(self, place: Place) -> None:
        opened = self.stack[-1] if self.stack else None
        if opened is None or not opened.closer or opened.kind[0] == "#" or not opened.items or opened.tail:
            raise PurpleError("a dot may stand only before the last datum of a list", "read", place)
        opened.tail.append(Datum(NIL, place))

    def atom(self, word: str, place: Place) -> Datum:
        if word == "nil":
            return Datum(NIL, place)
        first = word[0]
        if first == "#":
            return Datum(self.hash_word(word, place), place)
        if first == ":" and word.strip(":"):
            return Datum(Keyword(word[1:]), place)
        if first in "+-.0123456789":
            number = parse_number(word, place)
            if number is not None:
                return Datum(number, place)
        if not word.isprintable():
            odd = next(each for each in word if not each.isprintable())
            raise PurpleError(f"a symbol cannot hold the character U+{ord(odd):04X}", "read", place)
        return Name(word.casefold() if self.folds else word, place)

    def hash_word(self, word: str, place: Place) -> Any:
        if word in ("#t", "#true"):
            return True
        if word in ("#f", "#false"):
            return False
        number = parse_number(word, place)
        if number is None:
            raise PurpleError(f"{shortened(word)} means nothing", "read", place)
        return number

    def character(self, name: str, place: Place) -> Char:
        if len(name) == 1:
            return Char(ord(name))
        code = CHARACTERS.get(name)
        if code is None and name[0] == "x" and len(name) <= 7:
            code = int(name[1:], 16) if re.fullmatch("[0-9a-fA-F]+", name[1:]) else None
        if code is None or not is_code_point(code):
            raise PurpleError(f"there is no character #\\{shortened(name)}", "read", place)
        return Char(code)

    def unescape(self, word: str, place: Place) -> str:
        body = word[1:-1]
        if "\\" not in body:
            return body

        def replace(match: re.Match[str]) -> str:
            escape = match.group(1)
            if "\n" in escape:
                return ""
            if len(escape) > 1:
                code = int(escape.strip("xu{};"), 16)
                if is_code_point(code):
                    return chr(code)
            elif escape in ESCAPES:
                return ESCAPES[escape]
            raise PurpleError(
                f"\\{escape} is no escape of strings",
                "read",
                place,
                help='use \\n \\t \\r \\\\ \\" \\0 or \\u{1f600}',
            )

        return ESCAPE.sub(replace, body)

    def skip_block(self, start: int) -> None:
        depth = 1
        while depth:
            following = re.compile(r"\|#|#\|").search(self.text, self.position)
            if following is None:
                place = Place(self.file, self.line, start - self.line_start + 1, start, start + 2)
                raise Incomplete("this comment is never closed", "read", place)
            depth += 1 if following.group() == "#|" else -1
            self.position = following.end()
        self.advance(start)

    def advance(self, start: int) -> None:
        """Count the lines of what was just read."""
        breaks = self.text.count("\n", start, self.position)
        if breaks:
            self.line += breaks
            self.line_start = self.text.rfind("\n", start, self.position) + 1

    def at(self, opened: _Open, end: int | None = None) -> Place:
        width = len(opened.kind)
        return Place(self.file, opened.line, opened.column, opened.start, end or opened.start + width)

    def stuck(self) -> NoReturn:
        start = self.position
        place = Place(self.file, self.line, start - self.line_start + 1, start, start + 1)
        if self.text[start] == '"':
            raise Incomplete("this string is never closed", "read", place)
        if self.text[start] == "|":
            raise Incomplete("this symbol is never closed", "read", place)
        raise PurpleError(f"{self.text[start]!r} means nothing here", "read", place)


def _joined(items: list[Datum], tail: Datum | None, place: Place) -> Datum:
    """A list; `(a . (b c))` is `(a b c)`."""
    if isinstance(tail, Sequence):
        return Sequence(items + tail.value, place, tail.tail)
    if tail is not None and tail.value is NIL:
        tail = None
    return Sequence(items, place, tail)


def parse_number(word: str, place: Place | None = None) -> Number | None:
    """The number that a word is; None when it is none. One that does not fit is an error where there is
    a place.
    """
    try:
        number = numeral(word)
    except TooLarge:
        if place is None:
            return None
        raise PurpleError(f"{shortened(word)} is too long for a number", "read", place) from None
    if place is not None and isinstance(number, float) and math.isinf(number) and "inf" not in word.lower():
        raise PurpleError(f"{shortened(word)} does not fit in a float", "read", place)
    return number


IMAGINARY = re.compile(r"[+-]([0-9.]*i\Z|inf\.0|nan\.0)", re.IGNORECASE)  # what other Lisps read as numbers
UNREADABLE = re.compile(r"""[\x00-\x20\x7f-\xa0()\[\]"';`,|\\]|^#|^:.""", re.DOTALL)


def needs_bars(name: str) -> bool:
    """Whether a symbol would not read back as itself without bars around it."""
    if name in ("", ".", "nil") or is_numeral(name) or IMAGINARY.match(name):
        return True
    return UNREADABLE.search(name) is not None


def is_code_point(code: int) -> bool:
    return 0 <= code < 0xD800 or 0xDFFF < code < 0x110000


def shortened(word: str) -> str:
    return word if len(word) <= 30 else word[:27] + "…"


def to_value(datum: Datum) -> Any:
    """The value of a quoted datum: symbols for names, pairs for lists. Without recursion."""
    if not isinstance(datum, (Sequence, Vector)):
        return Symbol(datum.value) if isinstance(datum, Name) else datum.value
    # Children before parents: lists are met first, and put together in the opposite order.
    order: list[Datum] = [datum]
    for each in order:
        if isinstance(each, (Sequence, Vector)):
            order += [part for part in each.value if isinstance(part, (Sequence, Vector))]
            if isinstance(each, Sequence) and isinstance(each.tail, Vector):
                order.append(each.tail)
    built: dict[int, Any] = {}

    def part_value(part: Datum) -> Any:
        if isinstance(part, (Sequence, Vector)):
            return built[id(part)]
        return Symbol(part.value) if isinstance(part, Name) else part.value

    for each in reversed(order):
        parts = [part_value(part) for part in each.value]
        if isinstance(each, Vector):
            built[id(each)] = parts
        else:
            assert isinstance(each, Sequence)
            built[id(each)] = list_of(parts, NIL if each.tail is None else part_value(each.tail))
    return built[id(datum)]
