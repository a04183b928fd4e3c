"""The text of a program at every stage: Trace, FlatIR, StableHLO, the torch dialect, what XLA made of it."""

from __future__ import annotations

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, did_you_mean
from tenfold.flat.printer import print_flat
from tenfold.mlir import stablehlo
from tenfold.runtime import executables
from tenfold.trace.collect import Trace
from tenfold.trace.lower import lower
from tenfold.trace.printer import print_trace

STAGES = ("trace", "flat", "stablehlo", "torch", "hlo")
HLO_TITLE = "==== HLO, optimised by XLA ===="


def stage_text(program: Trace, device: Device, stage: str | None = None) -> str:
    """One stage's text, or without a stage the first three, one after the other."""
    if stage is None:
        return "\n\n".join(stage_text(program, device, each) for each in STAGES[:3])
    if stage == "trace":
        return print_trace(program)
    if stage == "flat":
        return print_flat(lower(program), str(device.resolved))
    if stage == "stablehlo":
        return f"{stablehlo.TITLE}\n{stablehlo.emit(lower(program)).text().rstrip()}"
    if stage == "torch":
        from tenfold.mlir import torch_dialect

        return f"{torch_dialect.TITLE}\n{torch_dialect.emit(program).text().rstrip()}"
    if stage == "hlo":
        return f"{HLO_TITLE}\n{executables.build(program, device).executable.hlo().rstrip()}"
    raise ArgumentError(
        f"there is no stage {stage!r}",
        help=did_you_mean(stage, STAGES) or f"the stages are {', '.join(STAGES)}",
    )
