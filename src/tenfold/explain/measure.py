"""Measures how long each FlatIR op takes, in a run that XLA's profiler watches.

The run is on zeros, which takes as long as any other data but for loops that depend on it. XLA tells what
each instruction took; a fused one's time is shared among the ops that it came from, by what each is estimated
to cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.meshes import Partitioned
from tenfold.engines import sharded, xla
from tenfold.explain.costs import Cost
from tenfold.explain.hlo import Hlo
from tenfold.flat.ir import TensorType

LONGEST = 10.0  # seconds that a run may be estimated to take
OUTER = ("while", "call", "conditional")  # instructions that run others


@dataclass(frozen=True)
class Times:
    """Seconds: of the whole run, of each FlatIR op, of instructions that came from none, and the rest of the
    run, in which no instruction ran. The last three add up to the first. `lines` has the lines of the HLO
    whose instructions ran, and the seconds of each."""

    run: float
    ops: tuple[float, ...]
    others: float
    waiting: float
    lines: tuple[tuple[int, float], ...] = ()


def measured(
    executable: xla.Executable, params: Sequence[TensorType], device: Device, hlo: Hlo, costs: Sequence[Cost]
) -> Times | None:
    """The times of one run, after one that is thrown away; None where it would take too long."""
    if sum(cost.seconds for cost in costs) > LONGEST or device.type == "meta":
        return None
    zeros = [np.zeros(param.shape, param.dtype.numpy) for param in params]
    if isinstance(device, Partitioned):
        buffers = [sharded.put(array, place) for array, place in zip(zeros, device.params, strict=True)]
    else:
        buffers = [xla.put(array, device) for array in zeros]
    events, seconds = xla.profiled(executable, buffers)
    instructions = {
        instruction.name: instruction
        for computation in hlo.computations.values()
        for instruction in computation.instructions
    }
    ops = [0.0] * len(costs)
    others = 0.0
    seconds_of = _took(events)
    for name, took in seconds_of.items():
        of = [op for op in sorted(instructions[name].marks) if op < len(ops)] if name in instructions else []
        if not of:
            others += took
            continue
        weights = [costs[op].seconds + 1e-9 for op in of]
        for op, weight in zip(of, weights, strict=True):
            ops[op] += took * weight / sum(weights)
    lines = [(instructions[name].line, took) for name, took in seconds_of.items() if name in instructions]
    return Times(seconds, tuple(ops), others, max(0.0, seconds - sum(ops) - others), tuple(lines))


def _took(events: Sequence[xla.TraceEvent]) -> dict[str, float]:
    """The seconds of each instruction, which add up to the time in which any ran. What runs at the same time
    shares it; an instruction that waits for others inside of it has the time in which none of them ran.
    """
    edges = [(event.start, 1, event.instruction) for event in events if event.instruction]
    edges += [(event.start + event.duration, -1, event.instruction) for event in events if event.instruction]
    running: Counter[str] = Counter()
    outer: Counter[str] = Counter()
    took: dict[str, float] = {}
    before = 0
    for now, step, name in sorted(edges):
        active = running or outer
        for each in active:
            took[each] = took.get(each, 0.0) + (now - before) / 1e9 / len(active)
        kind = outer if name.startswith(OUTER) else running
        kind[name] += step
        if not kind[name]:
            del kind[name]
        before = now
    return took
