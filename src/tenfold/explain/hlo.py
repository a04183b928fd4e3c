"""Parses XLA's text of an optimised program into lines, instructions and their marks. `profiler/hlo.py` reads
their costs and their memory from the same text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tenfold.explain import origins
from tenfold.explain.origins import FlatOp
from tenfold.explain.tags import PREFIX

# A mark stands in the place of a file's name: `source_file="tenfold-op-3"`. In a program on a mesh names
# have it, several where XLA merged instructions: `op_name="tenfold-op-3:1/add;tenfold-op-5:1/tanh"`.
_MARK = re.compile(rf'[";]{PREFIX}(\d+)[":]')
_METADATA = re.compile(r",? metadata=\{[^{}]*\}")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
_EXTENTS = re.compile(r"^\w+\[([\d,]*)\]")
_OPERAND = re.compile(r"%([\w.\-]+)")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_CALLED = re.compile(
    r"(?:calls|to_apply|body|condition|branch_computations|called_computations)=\{?((?:%?[\w.\-]+(?:, )?)+)"
)


@dataclass
class Instruction:
    """One instruction: its line, its name, the instructions that it reads, the computations that it calls,
    and what it came from."""

    line: int
    name: str
    opcode: str
    operands: tuple[str, ...]
    called: tuple[str, ...]
    marks: set[int]
    elements: int  # of its result, or 0 if it has several
    number: int  # of a parameter


@dataclass
class Computation:
    line: int
    name: str
    entry: bool
    instructions: list[Instruction] = field(default_factory=list)


@dataclass
class Hlo:
    """The text without metadata, for each line the FlatIR ops that it came from, and the computations."""

    lines: list[str]
    marks: list[tuple[int, ...]]
    computations: dict[str, Computation]

    @property
    def entry(self) -> Computation | None:
        return next((computation for computation in self.computations.values() if computation.entry), None)


def take_apart(text: str, ops: Sequence[FlatOp] = ()) -> Hlo:
    """The text of an optimised program that was made from these FlatIR ops, taken apart."""
    lines: list[str] = []
    computations: dict[str, Computation] = {}
    current: Computation | None = None
    for raw in text.rstrip().split("\n"):
        line = _METADATA.sub("", raw)
        opened = _COMPUTATION.match(line)
        if opened:
            current = computations[opened[2]] = Computation(len(lines), opened[2], bool(opened[1]))
        elif line.startswith("}"):
            current = None
        elif current is not None:
            instruction = _instruction(raw, line, len(lines))
            if instruction is not None:
                current.instructions.append(instruction)
        lines.append(line)
    origins.restore(computations, ops)
    _join(computations)
    return Hlo(lines, _marks(lines, computations), computations)


def _instruction(raw: str, line: str, number: int) -> Instruction | None:
    match = _INSTRUCTION.match(line)
    if match is None:
        return None
    name, type, opcode, rest = match.groups()
    inside = rest.partition(")")[0]
    called = [each.strip().lstrip("%") for group in _CALLED.findall(rest) for each in group.split(",")]
    marks = {int(each) for each in _MARK.findall(raw)}
    extents = _EXTENTS.match(type)
    return Instruction(
        number,
        name,
        opcode,
        tuple(_OPERAND.findall(inside)),
        tuple(filter(None, called)),
        marks,
        math.prod(int(each) for each in extents[1].split(",") if each) if extents else 0,
        int(inside) if opcode == "parameter" else -1,
    )


def _join(computations: dict[str, Computation]) -> None:
    """A fusion came from all that it holds. What says nothing of itself came from where its readers did, and
    inside of a computation that is called from where its callers did. Callees stand before their callers."""
    for computation in computations.values():
        for instruction in computation.instructions:
            for name in instruction.called:
                if name in computations:
                    instruction.marks |= {m for one in computations[name].instructions for m in one.marks}
    origins.inherit(computations)
    for computation in reversed(computations.values()):
        for instruction in computation.instructions:
            for name in instruction.called:
                inside = computations[name].instructions if name in computations else ()
                if not any(one.marks for one in inside):
                    for one in inside:
                        one.marks |= instruction.marks


def _marks(lines: list[str], computations: dict[str, Computation]) -> list[tuple[int, ...]]:
    marks: list[tuple[int, ...]] = [()] * len(lines)
    for computation in computations.values():
        union: set[int] = set()
        for instruction in computation.instructions:
            marks[instruction.line] = tuple(sorted(instruction.marks))
            union |= instruction.marks
        if not computation.entry:
            marks[computation.line] = tuple(sorted(union))
    return marks
