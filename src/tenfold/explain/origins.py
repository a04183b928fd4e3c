"""Finds out where an instruction without metadata came from, by the instructions that read it.

XLA writes most convolutions anew, in a layout that its kernels like, and puts copies and transposes around
them; none of these say where they came from. A copy is there for what reads it. A convolution is the one of
FlatIR from which its readers' ops lead back to it first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tenfold.explain.hlo import Computation, Instruction

# What computes nothing: it hands on what others made.
SILENT = ("parameter", "constant", "tuple", "get-tuple-element", "while", "conditional", "call", "iota")


class FlatOp(NamedTuple):
    """What is asked of a FlatIR op here: its kind, the ops that it reads, and how many elements it makes."""

    kind: str
    inputs: tuple[int, ...]
    elements: int


class Readers:
    """Who reads each instruction, looking into fusions."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self.computations = computations
        self.of: dict[tuple[str, str], list[tuple[Instruction, int]]] = defaultdict(list)
        for computation in computations.values():
            for reader in computation.instructions:
                for place, name in enumerate(reader.operands):
                    self.of[computation.name, name].append((reader, place))

    def marks(self, computation: str, name: str) -> Iterator[frozenset[int]]:
        """What the nearest readers that say so came from, one set for each."""
        for reader, place in self.of[computation, name]:
            inside = self.computations.get(reader.called[0]) if reader.opcode == "fusion" else None
            if inside is not None:
                params = [
                    instruction for instruction in inside.instructions if instruction.opcode == "parameter"
                ]
                param = next((each for each in params if each.number == place), None)
                marks = list(self.marks(inside.name, param.name)) if param is not None else []
                yield from marks or self.marks(computation, reader.name)
            elif reader.marks:
                yield frozenset(reader.marks)
            elif reader.opcode not in SILENT:
                yield from self.marks(computation, reader.name)


def restore(computations: Mapping[str, Computation], ops: Sequence[FlatOp]) -> None:
    """Give convolutions without metadata the FlatIR op that they came from."""
    readers = Readers(computations)
    wanted = {i for i, op in enumerate(ops) if op.kind == "Convolution"}
    marked = {mark for each in computations.values() for one in each.instructions for mark in one.marks}
    candidates: list[tuple[Instruction, set[int]]] = []
    for computation in computations.values():
        for each in computation.instructions:
            if each.opcode == "convolution" and not each.marks:
                nearest = [_nearest(mark, wanted, ops) for mark in readers.marks(computation.name, each.name)]
                likely = set.intersection(*nearest) if nearest else set(wanted - marked)
                fitting = {one for one in likely if ops[one].elements == each.elements}
                candidates.append((each, fitting or likely))
    taken: set[int] = set()
    while candidates:  # those that can have come from one op alone first
        candidates.sort(key=lambda pair: len(pair[1] - taken) or len(ops))
        instruction, likely = candidates.pop(0)
        free = likely - taken
        if free:
            instruction.marks.add(min(free))
            taken.add(min(free))


def _nearest(start: frozenset[int], wanted: set[int], ops: Sequence[FlatOp]) -> set[int]:
    """The wanted ops that are the fewest steps up from some ops, or those ops themselves."""
    level, seen = set(start), set(start)
    while level:
        if found := level & wanted:
            return found
        level = {each for op in level if op < len(ops) for each in ops[op].inputs} - seen
        seen |= level
    return set()


def inherit(computations: Mapping[str, Computation]) -> None:
    """Give what else has no origin that of its nearest readers: it is there for them."""
    readers = Readers(computations)
    fused = {name for each in computations.values() for one in each.instructions for name in one.called}
    for computation in computations.values():
        if computation.name in fused and not computation.entry:
            continue
        for instruction in reversed(computation.instructions):
            if not instruction.marks and instruction.opcode not in SILENT:
                instruction.marks |= {
                    mark for marks in readers.marks(computation.name, instruction.name) for mark in marks
                }
