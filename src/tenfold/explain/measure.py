"""How long each FlatIR op takes in a run that XLA's profiler watches.

The run is on zeros, which takes as long as any other data but for loops that depend on it. XLA tells what
each instruction took; a fused one's time is shared among the ops that it came from, by what each is estimated
to cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenfold.base.devices import Device
from tenfold.engines import xla
from tenfold.explain.costs import Cost
from tenfold.explain.hlo import Hlo
from tenfold.flat.ir import TensorType

LONGEST = 10.0  # seconds that a run may be estimated to take


@dataclass(frozen=True)
class Times:
    """Seconds: of the whole run, of each FlatIR op, and of instructions that came from none."""

    run: float
    ops: tuple[float, ...]
    others: float


def measured(
    executable: xla.Executable, params: Sequence[TensorType], device: Device, hlo: Hlo, costs: Sequence[Cost]
) -> Times | None:
    """The times of one run, after one that is thrown away; None where it would take too long."""
    if sum(each.seconds for each in costs) > LONGEST or device.type == "meta":
        return None
    buffers = [xla.put(np.zeros(each.shape, each.dtype.numpy), device) for each in params]
    events, seconds = xla.profiled(executable, buffers)
    marks = {
        each.name: sorted(each.marks)
        for computation in hlo.computations.values()
        for each in computation.instructions
    }
    ops = [0.0] * len(costs)
    others = 0.0
    for name, took in _took(events).items():
        of = [op for op in marks.get(name, ()) if op < len(ops)]
        if not of:
            others += took
            continue
        weights = [costs[op].seconds + 1e-9 for op in of]
        for op, weight in zip(of, weights, strict=True):
            ops[op] += took * weight / sum(weights)
    return Times(seconds, tuple(ops), others)


def _took(events: Sequence[xla.TraceEvent]) -> dict[str, float]:
    """The seconds of each instruction, those aside that only wait for others inside of them. One that runs in
    several threads at a time takes from the first's start to the last's end."""
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for each in events:
        if each.instruction and not each.instruction.startswith(("while", "call", "conditional")):
            start, end = spans.get((each.instruction, each.run), (each.start, 0))
            spans[each.instruction, each.run] = min(start, each.start), max(end, each.start + each.duration)
    took: dict[str, float] = {}
    for (name, _), (start, end) in spans.items():
        took[name] = took.get(name, 0.0) + (end - start) / 1e9
    return took
