"""The memory that a compiled program holds while it runs, instruction by instruction, and whose it is.

XLA's text is in the order in which it runs, so this follows from when each array is made and last read.
"""

from __future__ import annotations

from typing import NamedTuple

from tenfold.profiler.hlo import FREE, Instruction, Program


class Held(NamedTuple):
    """An array that is held when most memory is: its bytes, its instruction, the user's line."""

    bytes: int
    name: str
    line: str


class Memory(NamedTuple):
    """Of a program: the bytes held at each instruction, the most that are held, and the arrays held then."""

    timeline: dict[str, int]
    peak: int
    holders: list[Held]


def liveness(program: Program) -> Memory:
    """What a program holds as it runs: parameters throughout, results from where they are made."""
    body = program.computations.get(program.entry, {})
    order = list(body.values())
    owners = _owners(program, body)
    last = {
        owner: i for i, each in enumerate(order) for name in each.operands for owner in owners.get(name, ())
    }
    live = {each.name: each for each in order if each.opcode == "parameter"}
    held = sum(each.size for each in live.values())
    timeline: dict[str, int] = {}
    peak, at_peak = held, dict(live)
    for i, each in enumerate(order):
        if owners.get(each.name) == (each.name,) and each.name not in live:
            live[each.name] = each
            held += each.size
        timeline[each.name] = held
        if held > peak:
            peak, at_peak = held, dict(live)
        for name in [owner for operand in each.operands for owner in owners.get(operand, ())]:
            if last[name] == i and name in live and live[name].opcode != "parameter" and i < len(order) - 1:
                held -= live.pop(name).size
    holders = sorted(at_peak.values(), key=lambda each: -each.size)
    return Memory(
        timeline, peak, [Held(holder.size, holder.name, (holder.lines or [""])[0]) for holder in holders]
    )


def _owners(program: Program, body: dict[str, Instruction]) -> dict[str, tuple[str, ...]]:
    """For each name, the instructions whose memory it stands for."""
    owners: dict[str, tuple[str, ...]] = {}
    params = [each.name for each in body.values() if each.opcode == "parameter"]
    results = list(body.values())[-1].operands if body else []
    lent = {
        results[result]: params[param]
        for result, param in program.aliased.items()
        if result < len(results) and param < len(params)
    }
    for each in body.values():
        if each.name in lent:
            owners[each.name] = (lent[each.name],)
        elif each.opcode in ("parameter", "constant", "iota"):
            owners[each.name] = (each.name,)
        elif each.opcode in FREE or each.opcode == "while" or _in_place(each):
            of = each.operands[:1] if _in_place(each) else each.operands
            owners[each.name] = tuple(dict.fromkeys([owner for one in of for owner in owners.get(one, ())]))
        else:
            owners[each.name] = (each.name,)
    return owners


def _in_place(instruction: Instruction) -> bool:
    return instruction.opcode == "dynamic-update-slice" or (
        instruction.opcode == "fusion" and instruction.fused[-1:] == ["dynamic-update-slice"]
    )
