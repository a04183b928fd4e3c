"""Merges recordings of one program at several sizes: numbers that differ become `Open`. If they differ in
more than numbers, the program is a different one at other sizes, and is refused with the place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.flat.merging import Described, Different, another, merged, merged_type
from tenfold.ops.callee import Callee, OpCall, Program
from tenfold.ops.table import Row
from tenfold.trace.collect import Trace
from tenfold.trace.control import ControlNode, Part
from tenfold.trace.graph import Node, Value


class OpenCall(OpCall):
    """A call of an op with open numbers. It has no FlatIR, which would differ at each size."""

    __slots__ = ()

    def __init__(self, row: Row, arguments: tuple[Any, ...], result_types: Sequence[Any]):
        self.row = row
        self.arguments = arguments
        self.result_types = tuple(result_types)


class OpenProgram(Program):
    """A call of a program whose results have open sizes."""

    __slots__ = ()

    def __init__(self, callee: Callee, result_types: Sequence[Any]):
        self.name = callee.name
        self.random = callee.random
        self.result_types = tuple(result_types)


class OpenNode(Node):
    """A node of a merged program."""

    __slots__ = ()

    def __init__(self, callee: Any, inputs: tuple[Value, ...], source: Any):
        self.callee, self.inputs, self.source = callee, inputs, source


class OpenControlNode(ControlNode):
    """A choice or loop of a merged program."""

    __slots__ = ()

    def __init__(
        self, callee: Any, inputs: tuple[Value, ...], source: Any, parts: Any, starts: dict[int, Any]
    ):
        self.callee, self.inputs, self.source = callee, inputs, source
        self.parts, self.starts = parts, starts


def merged_programs(programs: Sequence[Trace], described: Described) -> Trace:
    """The programs as one, with their leaves in their order."""
    first = programs[0]
    for k, other in enumerate(programs[1:], 1):
        _require_same(first, other, k, described)
    values: dict[Value, Value] = {}
    leaves = []
    for several in zip(*[program.leaves for program in programs]):
        type = merged_type([value.type for value in several])
        leaves.append(Value(type, several[0].device, buffer=several[0].buffer))
        values[several[0]] = leaves[-1]
    nodes: list[Node] = []
    of_node: dict[Any, Value] = {}
    for several_nodes in zip(*[program.nodes for program in programs]):
        node = several_nodes[0]
        callees = [node.callee for node in several_nodes]
        inputs = tuple(
            [
                values[operand] if operand in values else of_node[operand.node, operand.index]
                for operand in node.inputs
            ]
        )
        try:
            arguments = merged([called.arguments for called in callees if isinstance(called, OpCall)] or [()])
            starts = [node.starts for node in several_nodes if isinstance(node, ControlNode)]
            carried = {i: merged([start[i] for start in starts]) for i in (starts[0] if starts else ())}
            types = [merged_type(column) for column in zip(*[called.result_types for called in callees])]
        except Different as error:
            raise another(node.callee.name, node.source, error.numbers, described) from None
        callee: Callee
        if isinstance(node.callee, OpCall):
            callee = OpenCall(node.callee.row, arguments, types)
        else:
            callee = OpenProgram(node.callee, types)
        open_node: Node
        if isinstance(node, ControlNode):
            parts = tuple(
                _merged_part(column, described) for column in zip(*[n.parts for n in several_nodes])
            )
            open_node = OpenControlNode(callee, inputs, node.source, parts, carried)
        else:
            open_node = OpenNode(callee, inputs, node.source)
        of_node.update(((node, i), Value(type, first.device, open_node, i)) for i, type in enumerate(types))
        nodes.append(open_node)
    return Trace(nodes, leaves, first.outputs, first.key, first.device)


def _merged_part(parts: Sequence[Part], described: Described) -> Part:
    """A program inside a choice or a loop, as it is at all sizes."""
    first = parts[0]
    return Part(merged_programs([part.trace for part in parts], described), first.places, first.results)


def _require_same(first: Trace, other: Trace, k: int, described: Described) -> None:
    """Refuse programs that call other ops, or the same on other values."""
    places, other_places = ({node: i for i, node in enumerate(trace.nodes)} for trace in (first, other))
    leaves, other_leaves = ({leaf: i for i, leaf in enumerate(trace.leaves)} for trace in (first, other))

    def operands(node: Node, places: Mapping[Node, int], leaves: Mapping[Value, int]) -> list[Any]:
        return [(places.get(operand.node, -1), operand.index, leaves.get(operand)) for operand in node.inputs]  # type: ignore[arg-type]

    for one, two in zip(first.nodes, other.nodes):
        name, other_name = one.callee.qualified, two.callee.qualified
        if name != other_name or operands(one, places, leaves) != operands(two, other_places, other_leaves):
            what = f"{name} at {described(0)} and {other_name} at {described(k)}"
            if name == other_name:
                what = f"{name} on other tensors at {described(k)} than at {described(0)}"
            raise UnsupportedError(
                f"the program depends on the sizes by more than its shapes: it calls {what}",
                help="decide by data with where, say in dynamic which sizes it is for, or export twice",
            ).located(one.callee.name, two.source or one.source)
    if len(first.nodes) != len(other.nodes) or first.outputs != other.outputs:
        counts = f"{len(first.nodes)} ops at {described(0)} and {len(other.nodes)} at {described(k)}"
        longer = max((first, other), key=lambda trace: len(trace.nodes)).nodes
        extra = (
            longer[min(len(first.nodes), len(other.nodes))] if len(first.nodes) != len(other.nodes) else None
        )
        raise UnsupportedError(
            f"the program depends on the sizes by more than its shapes: it calls {counts}",
            help="a loop over a dimension is as long as that is: leave this dimension fixed",
        ).located(extra.callee.name if extra else "", extra.source if extra else None)
