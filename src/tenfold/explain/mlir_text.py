"""Parses MLIR's text with locations into lines without them, and the mark of each line."""

from __future__ import annotations

import re

from tenfold.explain.tags import PREFIX

# A location at the end of a line, or after an argument: an alias, nothing known, or a mark of ours, which
# is a name in a program on a mesh.
_MARKED = rf'"{PREFIX}(\d+)(?:":\d+:\d+|:\d+/\w+")'
_LOCATION = re.compile(rf" loc\((#loc\d*|unknown|{_MARKED})\)")
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_MARK = re.compile(f"^{_MARKED}$")
_FUNCTION = re.compile(r"^\s*(module|func\.func)\b")


def take_apart(text: str) -> tuple[list[str], list[tuple[int, ...]]]:
    """The lines of a module, and for each line the numbers that its location is marked with."""
    aliases: dict[str, int | None] = {}
    raw = []
    for line in text.rstrip().split("\n"):
        alias = _ALIAS.match(line)
        if alias:
            mark = _MARK.match(alias[2])
            aliases[alias[1]] = int(mark[1]) if mark else None
        else:
            raw.append(line)
    places = [_place(line, aliases) for line in raw]
    lines = [_LOCATION.sub("", line) for line in raw]
    return lines, _closed(lines, places)


def _place(line: str, aliases: dict[str, int | None]) -> tuple[bool, int | None]:
    """Whether a line says where its op is from, and the mark if it is one of ours."""
    if _FUNCTION.match(line):
        return True, None  # its locations are those of arguments
    locations = list(_LOCATION.finditer(line))
    if not locations:
        return False, None
    last = locations[-1]
    return True, int(last[2]) if last[2] else aliases.get(last[1])


def _closed(lines: list[str], places: list[tuple[bool, int | None]]) -> list[tuple[int, ...]]:
    """An op with regions says at its last line where it is from: that goes for its first, and for all lines
    between that say nothing better."""
    marks = [mark for _, mark in places]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    opened: list[int] = []  # lines that opened something, innermost last
    for i, line in enumerate(lines):
        while opened and indents[opened[-1]] > indents[i]:
            opened.pop()
        says, mark = places[i]
        if not says and not line.lstrip().startswith("}"):
            opened.append(i)
        elif says and opened and indents[opened[-1]] == indents[i] and line.lstrip().startswith("}"):
            for j in range(opened.pop(), i):
                marks[j] = mark if marks[j] is None else marks[j]
    return [() if mark is None else (mark,) for mark in marks]
