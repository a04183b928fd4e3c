"""The skeleton of a Trace: the program without its sizes. It is split into a key and numbers, and put
together again with other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.flat.ir import TensorType
from tenfold.ops.callee import Callee, OpCall, Skeleton, skeleton_of_parts
from tenfold.trace.collect import Trace
from tenfold.trace.gradient import GradientNode, GradientProgram
from tenfold.trace.graph import Node, Value

Numbers = tuple[int, ...]


def skeleton_of(trace: Trace) -> tuple[tuple[Any, ...], list[int]]:
    """Split a program into a key and its whole numbers. Programs that differ only in these numbers have the
    same key. The extents of the leaves are the first numbers. An extent of 0 or 1 is also part of the key,
    since ops broadcast it."""
    key = list(trace.key)
    numbers: list[int] = []
    for leaf in trace.leaves:
        shape = leaf.type.shape
        key.append((leaf.type.dtype, *[extent if extent < 2 else -1 for extent in shape]))
        numbers += shape
    place = 0
    for node in trace.nodes:
        callee = node.callee
        if callee.skeleton is None:
            callee.skeleton = _skeleton(callee)
        key[place], own = callee.skeleton
        numbers += own
        place += 1 + len(node.inputs) + len(node.path)
    for i in range(place, len(trace.key)):
        if isinstance(key[i], TensorType):  # of a leaf, which is told above
            key[i] = None
    return tuple(key), numbers


def _skeleton(callee: Callee) -> tuple[Skeleton, Numbers]:
    """The skeleton of a callee, and its numbers."""
    results = tuple([(result_type.dtype, result_type.rank) for result_type in callee.result_types])
    if isinstance(callee, OpCall):
        numbers: list[int] = []
        arguments = _emptied(callee.arguments, numbers)
        types = tuple([(type.dtype, type.rank) for type in callee.types])
        return skeleton_of_parts((callee.row, types, arguments, results)), tuple(numbers)
    if isinstance(callee, GradientProgram):
        return skeleton_of_parts(("gradient", callee.wiring.key, results)), ()
    return skeleton_of_parts(("program", callee.id)), ()


def _emptied(argument: Any, numbers: list[int]) -> Any:
    """An argument without its whole numbers, which are put aside."""
    if type(argument) is tuple:
        return tuple([_emptied(element, numbers) for element in argument])
    if type(argument) is int:
        numbers.append(argument)
        return int
    return (type(argument), argument)  # 1.0 and True are equal


class Template:
    """A program that can be made anew with other numbers. It holds no data."""

    def __init__(self, trace: Trace):
        self.device = trace.device
        self.outputs = trace.outputs
        self.key = trace.key
        self.shapes = [(leaf.type.dtype, leaf.type.rank) for leaf in trace.leaves]
        leaves = {leaf: i for i, leaf in enumerate(trace.leaves)}
        places = {node: i for i, node in enumerate(trace.nodes)}
        # Of each node the callee, where its inputs come from, and the nodes that it differentiates.
        self.nodes = [
            (
                node.callee,
                [
                    (-1 - leaves[operand], 0) if operand in leaves else (places[operand.node], operand.index)  # type: ignore[index]
                    for operand in node.inputs
                ],
                [places[step] for step in node.path],
                node.source,
            )
            for node in trace.nodes
        ]

    def at(self, numbers: Sequence[int]) -> Trace:
        """The program with these numbers in the places of its own."""
        remaining = iter(numbers)
        leaves = [
            Value(TensorType(dtype, tuple([next(remaining) for _ in range(rank)])), self.device)
            for dtype, rank in self.shapes
        ]
        nodes: list[Node] = []
        for callee, inputs, path, source in self.nodes:
            operands = [
                leaves[-1 - place]
                if place < 0
                else Value(nodes[place].callee.result_types[index], self.device, nodes[place], index)
                for place, index in inputs
            ]
            if isinstance(callee, GradientProgram):
                on_path = tuple([nodes[step] for step in path])
                nodes.append(GradientNode(_rewired(callee, on_path), tuple(operands), source, on_path))
            else:
                nodes.append(Node(_retyped(callee, operands, remaining), tuple(operands), source))
        return Trace(nodes, leaves, self.outputs, self.key, self.device)


def _retyped(callee: Callee, inputs: Sequence[Value], numbers: Any) -> Callee:
    types = tuple([operand.type for operand in inputs])
    if isinstance(callee, OpCall):
        return callee.row.call(types, tuple([_filled(argument, numbers) for argument in callee.arguments]))
    if types != callee.types:
        raise UnsupportedError("the program calls another one, which is made for certain sizes")
    return callee


def _filled(argument: Any, numbers: Any) -> Any:
    if type(argument) is tuple:
        return tuple([_filled(element, numbers) for element in argument])
    return next(numbers) if type(argument) is int else argument


def _rewired(callee: GradientProgram, path: Sequence[Node]) -> GradientProgram:
    """The gradient along nodes of other types: a cotangent has the type of what it belongs to."""
    wiring = callee.wiring
    types: dict[int, TensorType] = {}
    for node, inputs, results in zip(path, wiring.inputs, wiring.results, strict=True):
        types.update(zip(inputs, [operand.type for operand in node.inputs], strict=True))
        types.update(zip(results, node.callee.result_types, strict=True))
    wanted = tuple([types[number] for number in wiring.wants])
    return callee if wanted == callee.result_types else GradientProgram(wiring, wanted)
