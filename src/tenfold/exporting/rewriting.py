"""Rewrites a recorded program for export: tensors that the function fills with one number become a `full`,
and ops that the target dialect lacks are expanded as `expansions.py` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tenfold.mlir.torch_emitter import data_of, op_call, slots_in
from tenfold.ops.callee import Callee
from tenfold.ops.table import SLOT, TABLE
from tenfold.runtime.calls import record_call
from tenfold.tensor import Tensor
from tenfold.trace import control
from tenfold.trace.collect import Trace
from tenfold.trace.control import ControlNode, Part
from tenfold.trace.graph import Node, Value, results_of
from tenfold.trace.numbers import Numbers

# By an op's qualified name, what does the same in other ops.
Expansions = Mapping[str, Callable[..., Sequence[Tensor]]]


def rewritten(
    program: Trace, filled: Mapping[Value, float], outputs: Sequence[int], expansions: Expansions
) -> Trace:
    """The program with `filled` leaves made by ops, those of its outputs that are named, and some of its ops
    expanded. Leaves that are only read by what is left out go with it; all others stay, in their order."""
    expanded = expansions and _has(program, expansions)
    if not filled and not expanded and len(outputs) == len(program.outputs):
        return program
    if any(node.path for node in program.nodes):  # a gradient names the nodes that it goes through
        return program
    writer = _Writer(program, expansions)
    for leaf, number in filled.items():
        writer.fill(leaf, number)
    for node in program.nodes:
        expand = expansions.get(node.callee.qualified)
        if expand is not None and not _draws(_arguments(node)):
            writer.expand(node, expand)
        else:
            writer.copy(node)
    results = [writer.output(*program.outputs[i]) for i in outputs]
    read = {operand for node in writer.nodes for operand in node.inputs} | set(results)
    before = {operand for node in program.nodes for operand in node.inputs}
    leaves = [leaf for leaf in program.leaves if leaf in read or (leaf not in before and leaf not in filled)]
    places = {node: i for i, node in enumerate(writer.nodes)}
    numbers = {leaf: i for i, leaf in enumerate(leaves)}
    targets = [
        (-1 - numbers[result], 0) if result in numbers else (places[result.node], result.index)  # type: ignore[index]
        for result in results
    ]
    return Trace(writer.nodes, leaves, targets, program.key, program.device)


def _has(program: Trace, expansions: Expansions) -> bool:
    """Whether one of these ops is in the program, or in a choice or loop of it."""
    return any(
        node.callee.qualified in expansions
        or (isinstance(node, ControlNode) and any(_has(part.trace, expansions) for part in node.parts))
        for node in program.nodes
    )


class _Writer:
    """A new program, as it is written from another."""

    def __init__(self, program: Trace, expansions: Expansions):
        self.program = program
        self.expansions = expansions
        self.nodes: list[Node] = []
        self.values: dict[Any, Value] = {leaf: leaf for leaf in program.leaves}

    def value(self, old: Value) -> Value:
        return self.values[old] if old in self.values else self.values[old.node, old.index]

    def output(self, place: int, index: int) -> Value:
        if place < 0:
            return self.values[self.program.leaves[-1 - place]]
        return self.values[self.program.nodes[place], index]

    def add(self, callee: Callee, inputs: Sequence[Value], source: Any, device: Any) -> tuple[Value, ...]:
        self.nodes.append(Node(callee, tuple(inputs), source))
        return results_of(self.nodes[-1], device)

    def fill(self, leaf: Value, number: float) -> None:
        (row,) = TABLE["full"]
        callee = row.call((), (leaf.type.shape, number, leaf.type.dtype, None, None, None))
        (self.values[leaf],) = self.add(callee, (), leaf.made_at, leaf.device)

    def copy(self, node: Node) -> None:
        inputs = tuple([self.value(operand) for operand in node.inputs])
        results = self.again(node, inputs, node.source)
        self.values.update(((node, i), result) for i, result in enumerate(results))

    def again(self, node: Node, inputs: tuple[Value, ...], source: Any) -> tuple[Value, ...]:
        """What a node gives that does the same on other inputs."""
        if not isinstance(node, ControlNode):
            return self.add(node.callee, inputs, source, self.program.device)
        first, second = (self.part(part) for part in node.parts)
        callee, starts = node.callee, node.starts
        if first is not node.parts[0] or second is not node.parts[1]:
            types = callee.result_types if starts else tuple([operand.type for operand in inputs])
            callee = control.program(callee.name, types, (first, second), starts, callee.random)
        self.nodes.append(ControlNode(callee, inputs, source, (first, second), starts))
        return results_of(self.nodes[-1], self.program.device)

    def part(self, part: Part) -> Part:
        inside = rewritten(part.trace, {}, range(len(part.trace.outputs)), self.expansions)
        return part if inside is part.trace else Part(inside, part.places, part.results)

    def expand(self, node: Node, steps: Callable[..., Sequence[Tensor]]) -> None:
        """What `steps` does, in the place of the node. It draws nothing, so a generator's state stays."""
        inputs = [self.value(operand) for operand in node.inputs]
        tensors = [Tensor(Value(operand.type, operand.device)) for operand in inputs]
        places = {id(tensor): i for i, tensor in enumerate(tensors)}
        slots = slots_in(op_call(node).arguments)
        arguments = _arguments(node, iter(tensors[:slots]), tensors[slots:])
        late = [name for name, argument in _arguments(node).items() if argument is int or argument is float]

        def call(arguments: dict[str, Any]) -> Sequence[Tensor]:
            return steps(
                **{
                    name: argument.item() if name in late else argument
                    for name, argument in arguments.items()
                }
            )

        flattened, recording, _ = record_call(call, (arguments,), {}, Tensor, numbers=Numbers())
        trace = recording.trace
        values: dict[Any, Value] = {}
        for place, leaf in zip(recording.inputs, trace.leaves):
            assert isinstance(place, int)
            values[leaf] = inputs[places[id(flattened[place])]]
        for inner in trace.nodes:
            operands = [values[old] if old in values else values[old.node, old.index] for old in inner.inputs]
            results = self.again(inner, tuple(operands), node.source)
            values.update(((inner, i), result) for i, result in enumerate(results))
        for index, (place, result) in enumerate(trace.outputs):
            last = trace.nodes[place] if place >= 0 else None
            self.values[node, index] = values[
                (last, result) if last is not None else trace.leaves[-1 - place]
            ]
        if node.callee.random:
            (state,) = (new for old, new in zip(node.inputs, inputs) if old not in data_of(node))
            self.values[node, len(trace.outputs)] = state


def _arguments(
    node: Node, tensors: Iterator[Any] | None = None, numbers: Sequence[Any] = ()
) -> dict[str, Any]:
    """The arguments of a node by name, with tensors in the place of slots, and of numbers that come from
    tensors; a generator's state left out."""
    arguments, callee, waiting = {}, op_call(node), iter(numbers)
    for argument, value in zip(callee.row.schema.arguments, callee.arguments, strict=False):
        late = value is int or value is float
        filled = value if tensors is None else next(waiting) if late else _filled(value, tensors)
        if argument.type.kind != "Generator":
            arguments[argument.name] = filled
    return arguments


def _draws(arguments: Mapping[str, Any]) -> bool:
    """Whether a call of an op drops elements by chance."""
    return bool(arguments.get("dropout_p", 0) or (arguments.get("dropout", 0) and arguments["train"]))


def _filled(value: Any, tensors: Iterator[Any]) -> Any:
    if isinstance(value, tuple):
        return [_filled(element, tensors) for element in value]
    return next(tensors) if value is SLOT else value
