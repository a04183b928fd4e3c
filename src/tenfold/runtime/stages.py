"""The text of a program at every stage: Trace, FlatIR, StableHLO, the torch dialect, what XLA made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, did_you_mean
from tenfold.base.meshes import Partitioned, Sharding
from tenfold.engines import sharded
from tenfold.flat.ir import TensorType
from tenfold.flat.printer import print_flat
from tenfold.mlir import stablehlo
from tenfold.mlir.source_lines import with_source_lines
from tenfold.runtime import executables
from tenfold.trace.collect import Trace
from tenfold.trace.lower import lower
from tenfold.trace.printer import print_trace

STAGES = ("trace", "flat", "stablehlo", "torch", "hlo", "sharding")
HLO_TITLE = "==== HLO, optimised by XLA ===="


def stage_text(program: Trace, device: Device, stage: str | None = None, source_lines: bool = False) -> str:
    """One stage's text, or without a stage the first three, one after the other; with `source_lines` MLIR's
    text too has the user's line beside each op."""
    if stage is not None and not isinstance(stage, str):
        raise ArgumentError(f"the stage is a name, not {type(stage).__name__}")
    if stage is None:
        return "\n\n".join(stage_text(program, device, stage, source_lines) for stage in STAGES[:3])
    if stage == "trace":
        return print_trace(program)
    if stage == "flat":
        return print_flat(lower(program), str(device.resolved))
    if stage == "stablehlo":
        place = placed(program, device)
        layout = place if isinstance(place, Partitioned) else None
        module = stablehlo.emit(lower(program), (), layout)
        return f"{stablehlo.TITLE}\n{_module_text(module, source_lines)}"
    if stage == "torch":
        from tenfold.mlir import torch_dialect

        return f"{torch_dialect.TITLE}\n{_module_text(torch_dialect.emit(program), source_lines)}"
    if stage == "hlo":
        executable = executables.build(program, placed(program, device)).executable
        return f"{HLO_TITLE}\n{executable.hlo().rstrip()}"
    if stage == "sharding":
        return _sharding_text(program, device)
    raise ArgumentError(
        f"there is no stage {stage!r}",
        help=did_you_mean(stage, STAGES) or f"the stages are {', '.join(STAGES)}",
    )


def _module_text(module: Any, source_lines: bool) -> str:
    text = str(module.text(locations=source_lines))
    return with_source_lines(text) if source_lines else text.rstrip()


def placed(program: Trace, device: Device) -> Device:
    """Where a program runs: on its device, or on a mesh with its leaves sharded as `device` or their data
    says. Those without data are replicated."""
    if device.mesh is None:
        return device
    params: Sequence[Sharding]
    if isinstance(device, Partitioned):
        params = device.params
    else:
        params = [
            sharded.sharding_if_any(leaf.buffer) or Sharding.replicated(device.mesh, leaf.type.rank)
            for leaf in program.leaves
        ]
    return sharded.place_of(device, program, params, {})


def _sharding_text(program: Trace, device: Device) -> str:
    """How each value of a program is sharded, beside the user's line: as XLA says of a program that gives
    all of them back."""
    if device.mesh is None:
        raise ArgumentError(f"a program on {device} is not sharded", help="put its tensors on a mesh")
    outputs = [
        (i, index) for i, node in enumerate(program.nodes) for index in range(len(node.callee.result_types))
    ]
    every = Trace(program.nodes, program.leaves, outputs, (*program.key, "sharding"), device)
    place = placed(every, device)
    assert isinstance(place, Partitioned)
    shardings = executables.build(every, place).executable.shardings
    lines = [f"==== Sharding over {device} ===="]
    for i, (leaf, sharding) in enumerate(zip(program.leaves, place.params, strict=True)):
        lines.append(_sharded(f"p{i}", leaf.type, sharding, "an input", leaf.made_at))
    for (i, index), sharding in zip(outputs, shardings, strict=False):
        node = program.nodes[i]
        several = len(node.callee.result_types) > 1
        name = f"t{i}_{index}" if several else f"t{i}"
        lines.append(_sharded(name, node.callee.result_types[index], sharding, node.callee.name, node.source))
    return "\n".join(lines)


def _sharded(name: str, type: TensorType, sharding: Sharding, maker: str, source: Any) -> str:
    place = f"  # {source.short}   {source.text}" if source else ""
    return f"{name}: {type} {sharding}  {maker}{place}"
