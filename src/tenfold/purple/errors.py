"""Errors of Purple programs: a message, its kind, the place, and the calls that led there."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.base.errors import TenfoldError
from tenfold.purple.core import NOWHERE, Place, is_unseen
from tenfold.purple.values import NIL, ErrorValue

STACK_SHOWN = 12
LINE_SHOWN = 100


class PurpleError(TenfoldError):
    """`value` is what a handler receives: an ErrorValue, or whatever was given to `raise`.

    `stack` are the calls under way, innermost first: the name of what was called, and where.
    """

    def __init__(
        self,
        message: str,
        kind: str = "error",
        place: Place = NOWHERE,
        *,
        value: Any = None,
        irritants: Any = NIL,
        help: str | None = None,
    ):
        super().__init__(message, help=help)
        self.kind, self.place, self.irritants = kind, place, irritants
        self.payload = value
        self.raised = value is not None
        self.stack: Sequence[tuple[str, Place]] = ()
        self.again = False  # raised again: calls that it leaves since come after those of `stack`
        self.notes: list[tuple[str, Place]] = []
        self.blamed = ""  # the name before the message's colon, of what the library called by its own choice

    @property
    def value(self) -> Any:
        if self.payload is None:
            place = "" if self.place is NOWHERE else str(self.place)
            self.payload = ErrorValue(self.message, self.kind, place, self.irritants, self)
        return self.payload

    def note(self, text: str, place: Place) -> PurpleError:
        """Show another place beside the error's own: a definition, or the use of a macro."""
        self.notes.append((text, place))
        return self

    def defined(self, name: str, place: Place, signature: str | None = None) -> PurpleError:
        """Show the definition of what was used wrongly: its place, or how the library writes it."""
        if not is_unseen(place.file):
            return self.note(f"{name} is defined here", place)
        if self.help is None and signature:
            self.help = f"it is written {signature}"
        return self

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.kind, self.place)


def report(error: PurpleError, sources: Mapping[str, str]) -> str:
    """The error as it is shown to people: place and message, the line with a caret, the stack, help."""
    where = f"{error.place}: " if error.place.line else ""
    lines = [f"{where}error: {error.message}", *_excerpt(error.place, sources)]
    for text, place in error.notes:
        lines += [f"{place}: note: {text}", *_excerpt(place, sources)]
    lines += [f"  in ({name} …) at {place}" for name, place in error.stack[:STACK_SHOWN]]
    if len(error.stack) > STACK_SHOWN:
        lines.append(f"  … and {len(error.stack) - STACK_SHOWN} more calls")
    help = error.help() if callable(error.help) else error.help
    if help:
        lines.append("  help: " + help.replace("\n", "\n        "))
    return "\n".join(lines)


def warning(message: str, place: Place, help: str, sources: Mapping[str, str]) -> str:
    """What is odd about a program that can still run, as it is shown to people."""
    return "\n".join([f"{place}: warning: {message}", *_excerpt(place, sources), f"  help: {help}"])


def _excerpt(place: Place, sources: Mapping[str, str]) -> list[str]:
    rows = sources.get(place.file, "").split("\n")
    if place.file not in sources or not 0 < place.line <= len(rows):
        return []
    row, column = rows[place.line - 1].rstrip("\r"), place.column - 1
    width = max(1, min(place.end - place.start, len(row) - column))
    if column > LINE_SHOWN // 2:
        row, column = "…" + row[column - 20 :], 21
    row = row[:LINE_SHOWN]
    width = max(1, min(width, len(row) - column))
    clean = "".join(each if each.isprintable() else " " for each in row)
    return [
        "  " + clean,
        "  " + " " * columns(clean[:column]) + "^" * max(1, columns(clean[column : column + width])),
    ]


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )
