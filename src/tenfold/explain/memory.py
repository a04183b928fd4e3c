"""Memory over a program: what is alive at each instruction of XLA's schedule, and what makes the peak."""

from __future__ import annotations

from dataclasses import dataclass

from tenfold.explain.hlo import Hlo
from tenfold.profiler.hlo import Program
from tenfold.profiler.memory import liveness


@dataclass(frozen=True)
class Memory:
    """For each instruction of the entry computation, in order: its line in the HLO, and the bytes alive while
    it runs. `arguments` are those of its parameters; `holders`, lines and bytes of what makes the peak."""

    lines: tuple[int, ...]
    live: tuple[int, ...]
    arguments: int
    holders: tuple[tuple[int, int], ...]  # the largest first


def memory_over(hlo: Hlo, text: str) -> Memory | None:
    """What is alive while each instruction runs; None where XLA gave no entry computation."""
    entry = hlo.entry
    if entry is None or not entry.instructions:
        return None
    program = Program(text)
    held = liveness(program)
    lines = {instruction.name: instruction.line for instruction in entry.instructions}
    sizes = {each.name: each.size for each in program.computations[program.entry].values()}
    params = [instruction.name for instruction in entry.instructions if instruction.opcode == "parameter"]
    holders = [(lines[holder.name], holder.bytes) for holder in held.holders if holder.name not in params]
    return Memory(
        tuple(lines[name] for name in held.timeline),
        tuple(held.timeline.values()),
        sum(sizes[name] for name in params),
        tuple(holders),
    )
