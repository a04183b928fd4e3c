"""Where gradients pass by a write.

A tensor that is written inside `no_grad`, or through `.data`, keeps its history: gradients go to what it was
before. Values tell of it by their origins. A program that is differentiated as a whole knows only what is
computed from what, so it is told of these detours.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from tenfold.base.errors import TraceError
from tenfold.base.source import capture
from tenfold.trace.collect import Trace
from tenfold.trace.graph import Origin, Value

Place = tuple[int, int]  # a node and its result, or (-1 - leaf, 0)


class Detours(NamedTuple):
    """The values whose gradients go elsewhere, and where: of those that nodes take, and of outputs."""

    operands: dict[Value, Place]
    outputs: dict[int, Place]

    def key(self, trace: Trace) -> tuple[Any, ...]:
        """What tells them from others of programs like this one."""
        operands = [
            (i, j, self.operands[operand])
            for i, node in enumerate(trace.nodes)
            for j, operand in enumerate(node.inputs)
            if operand in self.operands
        ]
        return tuple(operands), tuple(self.outputs.items())


NONE = Detours({}, {})


def detours(
    trace: Trace,
    origins: Sequence[Origin | None],
    written: Collection[Origin],
    what: str,
    forward: bool = False,
) -> Detours:
    """The detours on the way from outputs that have `origins`. `written` are leaves from outside that the
    program writes; `what` differentiates it. In `forward` mode every node is on the way: tangents pass
    `no_grad`, and the results of an inner level of differentiation, which have no origin."""
    places = {node: i for i, node in enumerate(trace.nodes)}
    inputs = {leaf: (-1 - i, 0) for i, leaf in enumerate(trace.leaves)}
    leaves = {_key(leaf.origin): place for leaf, place in inputs.items() if leaf.origin is not None}

    def detour(origin: Origin, at: Place, before: int, required: bool) -> Place | None:
        place = leaves.get(_key(origin))
        if place is None and origin.node in places:
            place = places[origin.node], origin.index
        if place == at:
            return None
        if place is not None and place[0] < before:
            return place
        if required and (origin.passes_by or origin.of in written):
            raise TraceError(
                "gradients pass by a write inside no_grad, and go to what the function does not read",
                help="write outside of the function, or call backward() inside it",
            ).located(what, capture())
        return None  # a leaf that the function made itself

    found = Detours({}, {})
    nodes = []
    for i, (origin, at) in enumerate(zip(origins, trace.outputs, strict=False)):
        if origin is not None:
            place = detour(origin, at, len(trace.nodes), True)
            if place is not None:
                found.outputs[i] = place
            nodes.append(origin.node)
    seen: set[Any] = set()

    def follow(nodes: list[Any], required: bool) -> None:
        while nodes:
            node = nodes.pop()
            if node in seen or node not in places:
                continue
            seen.add(node)
            for operand in node.inputs:
                if operand.origin is not None:
                    nodes.append(operand.origin.node)
                    if operand not in inputs:
                        at = places[operand.node], operand.index
                        place = detour(operand.origin, at, places[node], required)
                        if place is not None:
                            found.operands[operand] = place

    follow(nodes, True)
    if forward:
        follow(list(trace.nodes), False)
    return found


def _key(origin: Origin) -> Any:
    """What origins of one value have in common."""
    return origin.of if origin.node is None else (origin.node, origin.index)
