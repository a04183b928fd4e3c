"""Recorded programs written anew for a module: tensors that the function itself makes of one number become a
`full`, and ops that the way down has no lowering of become others: recurrent layers their steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tenfold.dtypes import bool_
from tenfold.functional import aten
from tenfold.ops.table import SLOT, TABLE, Signature
from tenfold.runtime.compile import trace
from tenfold.tensor import Tensor
from tenfold.trace.control import ControlNode
from tenfold.trace.graph import Node, Program, Value, results_of

# By an op's qualified name, what does the same in other ops.
Expansions = Mapping[str, Callable[..., Sequence[Tensor]]]


def rewritten(
    program: Program, filled: Mapping[Value, float], outputs: Sequence[int], expansions: Expansions
) -> Program:
    """The program with `filled` leaves made by ops, those of its outputs that are named, and some of its ops
    expanded. Leaves that are only read by what is left out go with it; all others stay, in their order."""
    expanded = expansions and any(node.signature.row.qualified in expansions for node in program.nodes)
    if not filled and not expanded and len(outputs) == len(program.outputs):
        return program
    if any(node.path for node in program.nodes):  # a gradient names the nodes that it goes through
        return program
    writer = _Writer(program)
    for leaf, number in filled.items():
        writer.fill(leaf, number)
    for node in program.nodes:
        expand = expansions.get(node.signature.row.qualified)
        if expand is not None and not _draws(_arguments(node)):
            writer.expand(node, expand)
        else:
            writer.copy(node)
    given = [writer.output(*program.outputs[i]) for i in outputs]
    read = {each for node in writer.nodes for each in node.inputs} | set(given)
    before = {each for node in program.nodes for each in node.inputs}
    leaves = [each for each in program.leaves if each in read or (each not in before and each not in filled)]
    places = {node: i for i, node in enumerate(writer.nodes)}
    numbers = {leaf: i for i, leaf in enumerate(leaves)}
    targets = [
        (-1 - numbers[each], 0) if each in numbers else (places[each.node], each.index)  # type: ignore[index]
        for each in given
    ]
    return Program(writer.nodes, leaves, targets, program.key, program.device)


class _Writer:
    """A new program, as it is written from another."""

    def __init__(self, program: Program):
        self.program = program
        self.nodes: list[Node] = []
        self.values: dict[Any, Value] = {leaf: leaf for leaf in program.leaves}

    def value(self, old: Value) -> Value:
        return self.values[old] if old in self.values else self.values[old.node, old.index]

    def output(self, place: int, index: int) -> Value:
        if place < 0:
            return self.values[self.program.leaves[-1 - place]]
        return self.values[self.program.nodes[place], index]

    def add(
        self, signature: Signature, inputs: Sequence[Value], source: Any, device: Any
    ) -> tuple[Value, ...]:
        self.nodes.append(Node(signature, tuple(inputs), source))
        return results_of(self.nodes[-1], device)

    def fill(self, leaf: Value, number: float) -> None:
        (row,) = TABLE["full"]
        signature = row.signature((), (leaf.type.shape, number, leaf.type.dtype, None, None, None))
        (self.values[leaf],) = self.add(signature, (), leaf.made_at, leaf.device)

    def copy(self, node: Node) -> None:
        inputs = tuple([self.value(each) for each in node.inputs])
        if isinstance(node, ControlNode):
            self.nodes.append(ControlNode(node.signature, inputs, node.source, node.parts, node.starts))
            results = results_of(self.nodes[-1], self.program.device)
        else:
            results = self.add(node.signature, inputs, node.source, self.program.device)
        self.values.update(((node, i), each) for i, each in enumerate(results))

    def expand(self, node: Node, steps: Callable[..., Sequence[Tensor]]) -> None:
        """What `steps` does, in the place of the node. It draws nothing, so a generator's state stays."""
        inputs = [self.value(each) for each in node.inputs]
        tensors = [Tensor(Value(each.type, each.device)) for each in inputs]
        places = {id(each): i for i, each in enumerate(tensors)}
        arguments = _arguments(node, iter(tensors))
        recorded = trace(lambda given: steps(**given), (arguments,), {}, Tensor)
        values: dict[Any, Value] = {}
        flattened = [id(each) for each in _tensors(list(arguments.values()))]
        for place, leaf in zip(recorded.inputs, recorded.program.leaves):
            values[leaf] = inputs[places[flattened[place]]]
        for each in recorded.program.nodes:
            given = [values[old] if old in values else values[old.node, old.index] for old in each.inputs]
            results = self.add(each.signature, given, node.source, self.program.device)
            values.update(((each, i), result) for i, result in enumerate(results))
        for index, (place, result) in enumerate(recorded.program.outputs):
            self.values[node, index] = values[recorded.program.nodes[place], result]


def _arguments(node: Node, tensors: Iterator[Any] | None = None) -> dict[str, Any]:
    """The arguments of a node by name, with tensors in the place of slots; a generator's state left out."""
    found = {}
    for argument, value in zip(node.signature.row.schema.arguments, node.signature.arguments, strict=False):
        filled = _filled(value, tensors) if tensors is not None else value
        if argument.type.kind != "Generator":
            found[argument.name] = filled
    return found


def _draws(arguments: Mapping[str, Any]) -> bool:
    """Whether a call of an op drops elements by chance."""
    return bool(arguments.get("dropout_p", 0) or (arguments.get("dropout", 0) and arguments["train"]))


def _filled(value: Any, tensors: Iterator[Any]) -> Any:
    if isinstance(value, tuple):
        return [_filled(each, tensors) for each in value]
    return next(tensors) if value is SLOT else value


def _tensors(tree: Any) -> list[Tensor]:
    if isinstance(tree, list):
        return [each for part in tree for each in _tensors(part)]
    return [tree] if isinstance(tree, Tensor) else []


# Recurrent layers, step by step


def _lstm(gates: Tensor, inner: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    enter, keep, new, leave = (gates + inner).chunk(4, 1)
    memory = keep.sigmoid() * states[1] + enter.sigmoid() * new.tanh()
    return [leave.sigmoid() * memory.tanh(), memory]


def _gru(gates: Tensor, inner: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    reset, keep, new = gates.chunk(3, 1)
    inner_reset, inner_keep, inner_new = inner.chunk(3, 1)
    fresh = (new + (reset + inner_reset).sigmoid() * inner_new).tanh()
    return [fresh + (keep + inner_keep).sigmoid() * (states[0] - fresh)]


Step = Callable[[Tensor, Tensor, Sequence[Tensor]], list[Tensor]]


def _steps(step: Step) -> Callable[..., list[Tensor]]:
    """A layer that does `step` at each time: outputs, and the last states of all layers and directions."""

    def unrolled(
        input: Tensor, hx: Any, params: list[Tensor], has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool,
    ) -> list[Tensor]:  # fmt: skip
        linear, stack = aten("linear"), aten("stack")
        starts = hx if isinstance(hx, list) else [hx]
        x = input.transpose(0, 1) if batch_first else input
        each = 4 if has_biases else 2
        ends: list[list[Tensor]] = []
        for _ in range(num_layers):
            outputs = []
            for backward in (False, True) if bidirectional else (False,):
                place = len(ends)
                of_input, of_state, *biases = params[place * each : (place + 1) * each]
                bias, inner_bias = biases or (None, None)
                asked = linear(x, of_input, bias)
                states = [start.select(0, place) for start in starts]
                times = range(x.shape[0])
                made = {}
                for time in reversed(times) if backward else times:
                    states = step(asked.select(0, time), linear(states[0], of_state, inner_bias), states)
                    made[time] = states[0]
                outputs.append(stack([made[time] for time in times]))
                ends.append(states)
            x = outputs[0] if len(outputs) == 1 else aten("cat")(outputs, 2)
        last = [stack([states[i] for states in ends]) for i in range(len(starts))]
        return [x.transpose(0, 1) if batch_first else x, *last]

    return unrolled


# Attention, which torch-mlir lowers to an op of its own and no further


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool,
    scale: float | None, enable_gqa: bool,
) -> list[Tensor]:  # fmt: skip
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (each.repeat_interleave(groups, -3) for each in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = aten("ones")(query.shape[-2], key.shape[-2], dtype=bool_, device=query.device).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if attn_mask is not None:
        masks = attn_mask.dtype is bool_
        scores = scores.masked_fill(~attn_mask, -math.inf) if masks else scores + attn_mask
    return [scores.softmax(-1) @ value]


# What the torch dialect has no op for, and what torch-mlir's ways down to other dialects have no end for.
FOR_TORCH: Expansions = {
    "lstm.input": _steps(_lstm),
    "gru.input": _steps(_gru),
    "rnn_tanh.input": _steps(lambda gates, inner, states: [(gates + inner).tanh()]),
    "rnn_relu.input": _steps(lambda gates, inner, states: [(gates + inner).relu()]),
}
FOR_LOWERING: Expansions = {**FOR_TORCH, "scaled_dot_product_attention": _attention}
