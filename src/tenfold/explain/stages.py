"""The text of a program at each stage, and which Trace nodes or FlatIR ops each line came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import TenfoldError
from tenfold.base.meshes import Partitioned
from tenfold.explain import hlo, mlir_text
from tenfold.explain.origins import FlatOp
from tenfold.explain.tags import marked_nodes
from tenfold.flat.printer import print_flat
from tenfold.runtime.stages import stage_text
from tenfold.trace.collect import Trace
from tenfold.trace.printer import print_trace

_RESULT = re.compile(r"t(\d+)(?:_\d+)?: ")
WIDTH = 2000  # characters of a line that are kept
_TYPE = re.compile(r"\[shape=\(([\d, ]*)\), dtype=\((\w+)\), loc=\((?:[^()]|\([^()]*\))*\)\]")


@dataclass(frozen=True)
class Stage:
    """One stage's lines. `links` has, for each line, the numbers of the Trace nodes that it came from, or, at
    the level "op", of the FlatIR ops. `absent` says why there is no text."""

    key: str
    title: str
    level: str  # "node" or "op"
    lines: Sequence[str] = ()
    links: Sequence[tuple[int, ...]] = ()
    numbers: Sequence[int] = ()  # of the source: each line's own number, 0 for what is no line of a file
    absent: str = ""
    blocks: Sequence[tuple[int, str]] = ()  # where a file or a function begins
    inputs: Sequence[tuple[int, tuple[int, ...]]] = ()  # the line of each input, and what reads it

    def origins(self, line: int) -> tuple[int, ...]:
        """What a line came from; of an input, what reads it."""
        return self.links[line] or dict(self.inputs).get(line, ())


def trace_stage(trace: Trace) -> Stage:
    """The Trace as `show` prints it, types in their short form, and the type of each single result."""
    lines = _short_types(print_trace(trace).split("\n")[1:])
    first = len(trace.leaves) + 1 if trace.leaves else 0
    for i, node in enumerate(trace.nodes):
        types = node.callee.result_types
        if len(types) == 1:
            lines[first + i] = lines[first + i].replace(f"t{i} =", f"t{i}: {types[0]} =", 1)
    links = _linked(lines, first, len(trace.nodes))
    inputs = _inputs(trace.leaves, [node.inputs for node in trace.nodes])
    return Stage("trace", "Trace", "node", clipped(lines), links, inputs=inputs)


def flat_stage(function: flat.Function, device: str, places: Sequence[str]) -> Stage:
    """`places` are the user's lines of each op, which the function itself does not know."""
    lines = _short_types(print_flat(function, device).split("\n")[1:])
    first = len(function.params) + 1 if function.params else 0
    for i, place in enumerate(places):
        text = lines[first + i].rsplit("  # ", 1)[0]
        lines[first + i] = f"{text}  # {place}" if place else text
    links = _linked(lines, first, len(function.ops))
    inputs = _inputs(function.params, [op.operands for op in function.ops])
    return Stage("flat", "FlatIR", "op", clipped(lines), links, inputs=inputs)


def _inputs(inputs: Sequence[Any], read: Sequence[Sequence[Any]]) -> list[tuple[int, tuple[int, ...]]]:
    """The line of each input, after a line that says what they are, and the numbers of its readers."""
    readers: dict[int, list[int]] = {id(value): [] for value in inputs}
    for number, operands in enumerate(read):
        for identity in {id(value) for value in operands} & readers.keys():
            readers[identity].append(number)
    return [(line, tuple(readers[id(value)])) for line, value in enumerate(inputs, 1)]


def _short_types(lines: Sequence[str]) -> list[str]:
    short = lambda match: f"{dtypes.BY_NAME[match[2]].short}[{match[1].strip(',').replace(' ', '')}]"
    return [_TYPE.sub(short, line) for line in lines]


def _linked(lines: Sequence[str], first: int, count: int) -> list[tuple[int, ...]]:
    return [(i - first,) if 0 <= i - first < count else () for i in range(len(lines))]


def stablehlo_stage(numbered: flat.Function, place: Device) -> Stage:
    """StableHLO; on a mesh with the shardings that are prescribed to XLA."""
    from tenfold.mlir import stablehlo

    layout = place if isinstance(place, Partitioned) else None
    lines, marks = mlir_text.take_apart(stablehlo.emit(numbered, (), layout).text(locations=True))
    return Stage("stablehlo", "StableHLO", "op", clipped(lines), marks)


def torch_stage(trace: Trace) -> Stage:
    """The torch dialect, where torch-mlir is installed and the program is ATen alone."""

    def made() -> Stage:
        from tenfold.mlir import torch_dialect

        with marked_nodes(trace):
            text = torch_dialect.emit(trace).text(locations=True)
        lines, marks = mlir_text.take_apart(text)
        return Stage("torch", "Torch dialect", "node", clipped(lines), marks)

    return _or_absent("torch", "Torch dialect", "node", made)


def sharding_stage(trace: Trace, device: Device) -> Stage:
    """Of a program on a mesh: the placement of each value."""

    def stage() -> Stage:
        lines = stage_text(trace, device, "sharding").split("\n")[1:]
        results = [_RESULT.match(line) for line in lines]
        links = [(int(result[1]),) if result else () for result in results]
        return Stage("sharding", "Sharding", "node", clipped(lines), links)

    return _or_absent("sharding", "Sharding", "node", stage)


def hlo_stage(text: str, function: flat.Function) -> tuple[Stage, hlo.Hlo]:
    """What XLA made of a function whose ops are numbered in their places."""
    places = {op: i for i, op in enumerate(function.ops)}
    ops = [
        FlatOp(
            type(op).__name__,
            tuple(places[operand.op] for operand in op.operands if operand.op in places),
            op.results[0].type.numel if op.results else 0,
        )
        for op in function.ops
    ]
    parts = hlo.take_apart(text, ops)
    blocks = [(computation.line, computation.name) for computation in parts.computations.values()]
    return Stage("hlo", "Optimised HLO", "op", clipped(parts.lines), parts.marks, blocks=blocks), parts


def _or_absent(key: str, title: str, level: str, make: Callable[[], Stage]) -> Stage:
    try:
        return make()
    except TenfoldError as error:
        return Stage(key, title, level, absent=error.message + (f"\n{error.help}" if error.help else ""))


def clipped(lines: Sequence[str]) -> list[str]:
    return list(_clipped(lines))


def _clipped(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if len(line) <= WIDTH:
            yield line
        else:
            yield f"{line[:WIDTH]} … and {len(line) - WIDTH:,} characters more"
