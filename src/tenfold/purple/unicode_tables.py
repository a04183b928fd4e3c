"""Classes and cases of letters as C tables, from the Unicode data that Python carries: a compiled program
and the interpreter, which asks Python, say the same of every character."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Iterator

LAST = 0x110000
CLASSES = ("ALPHABETIC", "NUMERIC", "WHITESPACE", "UPPER", "LOWER")


def classes(character: str) -> tuple[bool, ...]:
    """What a character is, in the order of CLASSES."""
    return (
        character.isalpha(),
        digit_value(character) is not None,
        is_whitespace(character),
        character.isupper(),
        character.islower(),
    )


def is_whitespace(character: str) -> bool:
    return unicodedata.category(character) in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x85"


def digit_value(character: str) -> int | None:
    return unicodedata.decimal(character, None)


def one(mapped: str, character: str) -> str:
    """What a character's case becomes where that is one character; else the character itself."""
    return mapped if len(mapped) == 1 else character


def header() -> str:
    """The text of unicode_tables.h, which characters.c includes."""
    lines = ["/* Made by unicode_tables.py from Unicode " + unicodedata.unidata_version + ". */"]
    lines += [f"enum {{ {', '.join(f'{name} = {1 << i}' for i, name in enumerate(CLASSES))} }};"]
    lines += ["static const struct { uint32_t first, last; int classes; } CLASSES[] = {"]
    lines += [f"    {{{first}, {last}, {bits}}}," for first, last, bits in _class_ranges()]
    lines += ["};", "static const struct { uint32_t zero; } DIGITS[] = {"]
    lines += [f"    {{{code}}}," for code in _codes() if digit_value(chr(code)) == 0]
    lines += ["};"]
    for name, change in (("UPPER", str.upper), ("LOWER", str.lower), ("FOLDED", str.casefold)):
        lines += _case_tables(name, change)
    return "\n".join([*lines, ""])


def _codes() -> Iterator[int]:
    """The code points of characters: all but surrogates."""
    return itertools.chain(range(0xD800), range(0xE000, LAST))


def _class_ranges() -> Iterator[tuple[int, int, int]]:
    start, before = 0, 0
    for code in [*_codes(), LAST]:
        bits = sum(1 << i for i, true in enumerate(classes(chr(code))) if true) if code < LAST else -1
        if bits != before:
            if before:
                yield start, code - 1, before
            start, before = code, bits


def _case_tables(name: str, change: Callable[[str], str]) -> Iterator[str]:
    changed = [(code, change(chr(code))) for code in _codes() if change(chr(code)) != chr(code)]
    yield f"static const PuCase TO_{name}[] = {{"
    yield from (f"    {{{code}, {ord(mapped)}}}," for code, mapped in changed if len(mapped) == 1)
    yield f"}};\nstatic const PuLongCase TO_LONG_{name}[] = {{"
    for code, mapped in changed:
        if len(mapped) > 1:
            escaped = "".join(f"\\{byte:03o}" for byte in mapped.encode())
            yield f'    {{{code}, "{escaped}"}},'
    yield "};"
