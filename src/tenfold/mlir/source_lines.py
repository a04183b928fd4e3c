"""MLIR's text with the user's lines beside its ops, as comments, in the place of its own locations."""

from __future__ import annotations

import os
import re

# A location at the end of a line, or after an argument: an alias, nothing known, a place in a file, or, in a
# program on a mesh, a name that says the place.
_LOCATION = re.compile(r' loc\((#loc\d*|unknown|"[^"]*"(?::\d+:\d+)?)\)')
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_PLACE = re.compile(r'^"([^"]*?)"?:(\d+)(?::\d+|/\w+")$')


def with_source_lines(text: str) -> str:
    """The text of a module, printed with locations, as `%0 = stablehlo.tanh %arg0 : … // model.py:3`."""
    aliases: dict[str, str] = {}
    lines = []
    for line in text.rstrip().split("\n"):
        alias = _ALIAS.match(line)
        if alias:
            aliases[alias[1]] = alias[2]
        else:
            lines.append(line)
    return "\n".join([_commented(line, aliases) for line in lines])


def _commented(line: str, aliases: dict[str, str]) -> str:
    matches = list(_LOCATION.finditer(line))
    plain = _LOCATION.sub("", line)
    if not matches or matches[-1].end() != len(line.rstrip()):
        return plain
    place = _PLACE.match(aliases.get(matches[-1][1], matches[-1][1]))
    return f"{plain}  // {os.path.basename(place[1])}:{place[2]}" if place else plain
