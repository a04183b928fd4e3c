"""A Purple program for the page of `tenfold explain`: its source, owned form and C, linked line by line, and
beside them the stages of each tensor program that it evaluates when it is interpreted."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import CodeType

from tenfold.base.errors import ArgumentError
from tenfold.explain.explanation import Explanation, NodeFacts
from tenfold.explain.observed import observing_programs
from tenfold.explain.sources import Lines, recorded_lines, source_stage
from tenfold.explain.stages import Stage, clipped
from tenfold.purple import emit_c, memory
from tenfold.purple.constants import c_string
from tenfold.purple.core import UNSEEN, is_unseen
from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.interpret import Session, expand_program
from tenfold.purple.prims.control import Exit
from tenfold.purple.reader import read_source

_LINE = re.compile(r'^#line (\d+) (".*")$')
FileLine = tuple[str, int]  # a file and a line of it


def explain_purple(path: str, function: str | None = None) -> list[Explanation]:
    """Run a program and explain each tensor program that it evaluates; with `function`, only those with ops
    of that function. Of a program that evaluates none, what the compiler makes of it."""
    text = read_source(path)
    compiled = _compiled(text, path)
    session = Session()

    def concerns(code: CodeType) -> bool:
        known = [session.unit.functions.get(part) for part in code.co_qualname.split(".")]
        return any(each is not None and each.name == function for each in known)

    # Exit is raised where the program ends itself.
    with observing_programs(concerns if function else None) as observed, contextlib.suppress(Exit):
        with_deep_stack(lambda: session.run_text(text, path))
    programs = observed.explanations()
    if function and not programs:
        defined = any(known.name == function for known in session.unit.functions.values())
        what = f"calls {function} on no tensor" if defined else f"defines no {function!r}"
        raise ArgumentError(f"{path} {what}")
    return [compiled.beside(program) for program in programs] or [compiled.alone(os.path.basename(path))]


@dataclass(frozen=True)
class _Compiled:
    """What the compiler makes of a program: lines of the owned form and of the C, with the source line that
    each came from, and remarks on source lines. On the page each such source line is a node."""

    path: str
    owned: Sequence[str]
    owned_places: Sequence[FileLine | None]
    c: Sequence[str]
    c_places: Sequence[FileLine | None]
    facts: tuple[tuple[str, str], ...]
    counted: dict[FileLine, str]

    @property
    def used(self) -> list[FileLine]:
        return sorted({place for place in (*self.owned_places, *self.c_places) if place})

    def alone(self, title: str) -> Explanation:
        return self.beside(Explanation(title, "", (), (), (), None, 0))

    def beside(self, program: Explanation) -> Explanation:
        """The page of a tensor program, with the stages of the compiler between its source and its Trace."""
        numbers = {place: len(program.nodes) + i for i, place in enumerate(self.used)}
        files: dict[str, Lines] = {
            self.path: {},
            **recorded_lines([node.place for node in program.nodes]),
        }
        for (file, line), number in numbers.items():
            files.setdefault(file, {}).setdefault(line, set()).add(number)
        links = lambda places: [_linked(place, numbers, files) for place in places]
        stages = (
            source_stage(files),
            Stage("owned", "Owned form", "node", clipped(self.owned), links(self.owned_places)),
            Stage("c", "C99", "node", clipped(self.c), links(self.c_places)),
            *[stage for stage in program.stages if stage.key != "source"],
        )
        lines = tuple(
            [NodeFacts(self._name(place), self.counted.get(place, ""), (), (), "") for place in numbers]
        )
        return replace(
            program,
            stages=stages,
            nodes=(*program.nodes, *lines),
            facts=self.facts,
            source_lines=len(lines),
        )

    def _name(self, place: FileLine) -> str:
        file, line = place
        return f"line {line}" if file == self.path else f"{os.path.basename(file)}:{line}"


def _linked(place: FileLine | None, numbers: dict[FileLine, int], files: dict[str, Lines]) -> tuple[int, ...]:
    """The node of a source line and the Trace nodes that were recorded there."""
    if place is None:
        return ()
    file, line = place
    return tuple(sorted({numbers[place], *files[file].get(line, ())}))


def _compiled(text: str, path: str) -> _Compiled:
    program = expand_program(text, path)
    module = emit_c.deep(lambda: emit_c.analysed(program))
    owned = list(emit_c.deep(lambda: list(memory.owned_form(module))))
    files = {c_string(file): file for file in program.sources}
    c_lines, c_places = _c_lines(emit_c.compile_program(program, lines=True), files)
    released = memory.releases(module)
    return _Compiled(
        path,
        _closer((line for line, _ in owned), path),
        [(place.file, place.line) if place and not is_unseen(place.file) else None for _, place in owned],
        c_lines,
        c_places,
        (
            ("releases", str(released.total)),
            ("decided by the compiler", f"{round(100 * released.decided)} %"),
            ("reused", str(released.reused)),
            ("counted", str(len(released.counted))),
        ),
        {(place.file, place.line): why for place, _, why in released.counted},
    )


def _closer(lines: Iterable[str], path: str) -> list[str]:
    """Remarks right after what they are about, and the file without its folder: panes are narrower than
    terminals."""
    shorter = lambda line: line.replace(f"   {path}:", f"   {os.path.basename(path)}:")
    return [re.sub(r"\s{3,}; ", "   ; ", shorter(line)) for line in lines]


def _c_lines(text: str, files: dict[str, str]) -> tuple[list[str], list[FileLine | None]]:
    """The C without its `#line`s, and for each line the line of the source that it came from. `files` has
    the name of each source file by its C literal."""
    lines: list[str] = []
    places: list[FileLine | None] = []
    place: FileLine | None = None
    for line in text.rstrip().split("\n"):
        found = _LINE.match(line)
        if found:
            file = files.get(found[2], UNSEEN[0])
            place = (file, int(found[1])) if not is_unseen(file) else None
            continue
        if not line.startswith(" "):  # labels, and what is outside of functions
            place = None
        lines.append(line)
        places.append(place)
    return lines, places
