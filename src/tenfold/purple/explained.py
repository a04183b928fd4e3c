"""A Purple program for the page of `tenfold explain`: source, owned form and C, linked line by line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tenfold.explain.explanation import Explanation, NodeFacts
from tenfold.explain.stages import Stage, clipped
from tenfold.purple import emit_c, memory
from tenfold.purple.interpret import expand_program
from tenfold.purple.reader import read_source

_LINE = re.compile(r'^#line (\d+) "(.*)"$')


def explain_purple(path: str) -> Explanation:
    """The stages of a program in a file. A node is a line of it: what the others' lines came from."""
    text = read_source(path)
    program = expand_program(text, path)
    module = emit_c.deep(lambda: emit_c.analysed(program))
    compiled = emit_c.compile_program(program, lines=True)
    source = text.split("\n")
    numbers = list(range(1, len(source) + 1))
    owned = list(emit_c.deep(lambda: list(memory.owned_form(module))))
    places = [place.line if place is not None and place.file == path else 0 for _, place in owned]
    c_lines, c_places = _c_lines(compiled, path)
    used = {*places, *c_places} - {0}
    released = memory.releases(module)
    counted = {line: why for place, _, why in released.counted for line in [place.line]}
    stages = (
        Stage(
            "source",
            "Source",
            "node",
            clipped(source),
            _linked(n if n in used else 0 for n in numbers),
            numbers,
        ),
        Stage("owned", "Owned form", "node", clipped(_closer(line for line, _ in owned)), _linked(places)),
        Stage("c", "C99", "node", clipped(c_lines), _linked(c_places)),
    )
    facts = (
        ("releases", str(released.total)),
        ("decided by the compiler", f"{round(100 * released.decided)} %"),
        ("reused", str(released.reused)),
        ("counted", str(len(released.counted))),
    )
    nodes = tuple(NodeFacts(f"line {n}", counted.get(n, ""), (), (), "") for n in numbers)
    return Explanation(path.rpartition("/")[2], "", stages, nodes, (), None, 0, facts)


def _closer(lines: Iterable[str]) -> list[str]:
    """Remarks right after what they are about: panes are narrower than terminals."""
    return [re.sub(r"\s{3,}; ", "   ; ", line) for line in lines]


def _linked(places: Iterable[int]) -> list[tuple[int, ...]]:
    return [(place - 1,) if place else () for place in places]


def _c_lines(text: str, path: str) -> tuple[list[str], list[int]]:
    """The C without its `#line`s, and for each line the line of the source that it came from, or 0."""
    lines: list[str] = []
    places: list[int] = []
    place = 0
    for line in text.rstrip().split("\n"):
        found = _LINE.match(line)
        if found:
            place = int(found[1]) if found[2] == path else 0
            continue
        if not line.startswith(" "):  # labels, and what is outside of functions
            place = 0
        lines.append(line)
        places.append(place)
    return lines, places
