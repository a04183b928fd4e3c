"""The user's files as a stage: their lines, and which nodes came from each."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping, Sequence

from tenfold.base.source import short_name
from tenfold.explain.stages import Stage, clipped

WHOLE = 3000  # lines of a file that is shown whole
AROUND = 100  # of a longer one, lines before and after each that recorded something


Lines = dict[int, set[int]]  # the nodes that came from each line of a file


def recorded_lines(places: Iterable[tuple[str, int, int]]) -> dict[str, Lines]:
    """For each file the nodes of its lines, given each node's file, first and last line; the file with most
    nodes first."""
    files: dict[str, Lines] = {}
    for node, (filename, first, last) in enumerate(places):
        if filename:
            used = files.setdefault(filename, {})
            for line in range(first, last + 1):
                used.setdefault(line, set()).add(node)
    count = lambda name: len(set().union(*files[name].values()))
    return {name: files[name] for name in sorted(files, key=count, reverse=True)}


def source_stage(files: Mapping[str, Lines]) -> Stage:
    """The files, one after the other."""
    listing = _Listing()
    for filename in files:
        text = [line.rstrip("\r\n") for line in linecache.getlines(filename)]
        if text:
            if len(files) > 1:
                listing.blocks.append((len(listing.lines), short_name(filename)))
                listing.add(short_name(filename))
            listing.file(text, files[filename])
    return listing.stage()


class _Listing:
    """Lines of files, one file after the other."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.links: list[tuple[int, ...]] = []
        self.numbers: list[int] = []
        self.blocks: list[tuple[int, str]] = []

    def add(self, line: str, number: int = 0, linked: Iterable[int] = ()) -> None:
        self.lines.append(line)
        self.links.append(tuple(sorted(linked)))
        self.numbers.append(number)

    def file(self, text: Sequence[str], used: dict[int, set[int]]) -> None:
        before = 0
        for number in _shown(len(text), used):
            if number != before + 1:
                self.add(f"⋯ {number - before - 1:,} lines")
            self.add(text[number - 1], number, used.get(number, ()))
            before = number

    def stage(self) -> Stage:
        if not self.lines:
            return Stage("source", "Source", "node", absent="Where this program was written is not known.")
        lines = clipped(self.lines)
        return Stage("source", "Source", "node", lines, self.links, self.numbers, blocks=self.blocks)


def _shown(count: int, used: dict[int, set[int]]) -> list[int]:
    if count <= WHOLE:
        return list(range(1, count + 1))
    near = {n for line in used for n in range(max(1, line - AROUND), min(count, line + AROUND) + 1)}
    return sorted(near)
