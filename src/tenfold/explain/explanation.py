"""The data of one explained program: its stages, nodes, ops, costs and memory, as plain structures."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tenfold import flat
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, TenfoldError, did_you_mean
from tenfold.base.source import Source
from tenfold.compiler import recorded, uncompiled
from tenfold.explain import html
from tenfold.explain.costs import Cost, cost_of
from tenfold.explain.measure import Times, measured
from tenfold.explain.memory import Memory, memory_over
from tenfold.explain.modules import watching_modules
from tenfold.explain.sources import recorded_lines, source_stage
from tenfold.explain.stages import (
    Stage,
    flat_stage,
    hlo_stage,
    sharding_stage,
    stablehlo_stage,
    torch_stage,
    trace_stage,
)
from tenfold.explain.tags import lowered, numbered
from tenfold.mlir.torch_emitter import data_of
from tenfold.runtime import executables
from tenfold.runtime.stages import placed
from tenfold.trace.collect import Trace
from tenfold.trace.graph import Node


@dataclass(frozen=True)
class NodeFacts:
    """A Trace node: what it calls, the types of its results, the nodes that it reads, its module's path, and
    where it was recorded: a file, and the first and the last line of the expression."""

    name: str
    op: str
    types: tuple[str, ...]
    inputs: tuple[int, ...]
    module: str
    place: tuple[str, int, int] = ("", 0, 0)


@dataclass(frozen=True)
class OpFacts:
    """A FlatIR op: its name, the types of its results, the ops that it reads, the nodes that it came from."""

    name: str
    op: str
    types: tuple[str, ...]
    inputs: tuple[int, ...]
    nodes: tuple[int, ...]
    cost: Cost


@dataclass(frozen=True)
class Explanation:
    """A program at all its stages. In a notebook it shows itself; `save` writes the page to a file.

        tenfold.explain(lambda x: (x @ x).tanh(), tenfold.ones(3, 3)).save("page.html")

    `lit` tells what a line of one stage lights up in the others.
    """

    title: str
    device: str
    stages: tuple[Stage, ...]
    nodes: tuple[NodeFacts, ...]
    ops: tuple[OpFacts, ...]
    memory: Memory | None
    held: int  # the bytes that XLA says a run holds
    facts: tuple[tuple[str, str], ...] = ()  # further figures at the top of the page
    times: Times | None = None  # of a run that was measured
    source_lines: int = 0  # of the nodes, the last ones, which stand for lines that another compiler took

    def stage(self, key: str) -> Stage:
        """One stage: "source", "trace", "flat", "stablehlo", "torch" or "hlo"."""
        for each in self.stages:
            if each.key == key:
                return each
        keys = [each.key for each in self.stages]
        raise ArgumentError(
            f"there is no stage {key!r}", help=did_you_mean(key, keys) or f"the stages are {', '.join(keys)}"
        )

    def lit(self, key: str, line: int) -> dict[str, list[int]]:
        """The lines of each stage that a line of the stage `key`, counted from 0, has to do with."""
        stage = self.stage(key)
        start = set(stage.origins(line))
        if stage.level == "node":
            nodes, ops = start, {i for i, op in enumerate(self.ops) if start.intersection(op.nodes)}
        else:
            ops, nodes = start, {node for i in start for node in self.ops[i].nodes}
        return {
            each.key: [
                i
                for i, linked in enumerate(each.links)
                if (nodes if each.level == "node" else ops).intersection(linked)
                or (each is stage and i == line and start)
            ]
            for each in self.stages
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, numbers and strings."""
        return asdict(self)

    def html(self) -> str:
        """The page: one file that needs no other and no network."""
        return html.page(self.title, [self.to_dict()])

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_text(self.html(), encoding="utf-8")

    def open(self) -> None:
        """Show the page in the browser. Where there is none, print where the page is."""
        folder = tempfile.mkdtemp(prefix="tenfold-explain-")
        path = Path(folder) / "page.html"
        self.save(path)
        if not webbrowser.open(path.as_uri()):
            print(f"no browser was found: open {path.as_uri()} yourself", file=sys.stderr)

    def __repr__(self) -> str:
        flops = sum(op.cost.flops for op in self.ops)
        nodes = len(self.nodes) - self.source_lines
        size = f"{nodes} nodes, {len(self.ops)} FlatIR ops, {flops:,} FLOPs"
        return f"<Explanation of {self.title}: {size}>"

    def _repr_html_(self) -> str:
        return html.frame(self.html())


def explain_call(function: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any]) -> Explanation:
    """Explain a function's program on these arguments; of a compiled function, what it was made from."""
    if not callable(function):
        raise ArgumentError(f"explain takes a function, not {type(function).__name__}")
    plain = uncompiled(function)
    with watching_modules() as paths:
        trace = recorded(plain, args, dict(kwargs))
    name = getattr(plain, "__name__", None) or type(plain).__name__
    return explain_trace(trace, trace.device, name, paths)


def explain_trace(
    trace: Trace, device: Device, title: str, paths: Mapping[Node, str] | None = None
) -> Explanation:
    """Explain a piece of the Trace."""
    return drafted(trace, device, title, paths)()


def drafted(
    trace: Trace,
    device: Device,
    title: str,
    paths: Mapping[Node, str] | None = None,
    compiled: bool = True,
) -> Callable[[], Explanation]:
    """What finishes an explanation by compiling the program, which costs time. The Trace is looked at now:
    once a program has run, its values let go of how they were computed. Unless it is to be `compiled`, there
    is no HLO and no memory."""
    function, origins = lowered(trace)
    marked = numbered(function)
    places = [_short(trace, nodes) for nodes in origins]
    nodes = _nodes(trace, paths if paths is not None else {})
    place = placed(trace, device)
    stages: tuple[Stage, ...] = (
        source_stage(recorded_lines([node.place for node in nodes])),
        trace_stage(trace),
        flat_stage(function, str(device.resolved), places),
        stablehlo_stage(marked, place),
        torch_stage(trace),
    )
    if device.mesh is not None:
        stages += (sharding_stage(trace, device),)
    ops = _ops(function, origins)

    def finish() -> Explanation:
        memory, held = None, 0
        if not compiled:
            last = Stage("hlo", "Optimised HLO", "op", absent="The program was not compiled.")
            return Explanation(title, str(device.resolved), (*stages, last), nodes, ops, None, 0)
        try:
            executable = executables.compile_apart(marked, place)
            text = executable.hlo()
            last, parts = hlo_stage(text, function)
            memory, held = memory_over(parts, text), executable.memory()
            types = [param.type for param in function.params]
            times = measured(executable, types, place, parts, [op.cost for op in ops])
        except TenfoldError as error:
            last, times = Stage("hlo", "Optimised HLO", "op", absent=error.message), None
        return Explanation(
            title, str(device.resolved), (*stages, last), nodes, ops, memory, held, times=times
        )

    return finish


def _short(trace: Trace, nodes: Sequence[int]) -> str:
    sources = [trace.nodes[node].source for node in nodes]
    return next((source.short for source in sources if source), "")


def _nodes(trace: Trace, paths: Mapping[Node, str]) -> tuple[NodeFacts, ...]:
    places = {node: i for i, node in enumerate(trace.nodes)}
    facts = []
    for i, node in enumerate(trace.nodes):
        read = [places[each.node] for each in data_of(node) if each.node in places]
        types = tuple(str(result_type) for result_type in node.callee.result_types)
        inputs = tuple(dict.fromkeys(read))
        source = node.source
        place = (source.filename, source.line, source.end_line) if isinstance(source, Source) else ("", 0, 0)
        facts.append(NodeFacts(f"t{i}", node.callee.qualified, types, inputs, paths.get(node, ""), place))
    return tuple(facts)


def _ops(function: flat.Function, origins: Sequence[tuple[int, ...]]) -> tuple[OpFacts, ...]:
    places = {op: i for i, op in enumerate(function.ops)}
    facts = []
    for op, nodes in zip(function.ops, origins, strict=True):
        read = tuple(dict.fromkeys(places[operand.op] for operand in op.operands if operand.op in places))
        types = tuple(str(result.type) for result in op.results)
        name = op.results[0].name or "" if op.results else ""
        facts.append(OpFacts(name, type(op).__name__, types, read, nodes, cost_of(op)))
    return tuple(facts)
