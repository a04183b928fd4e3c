"""Pieces of the Trace: the nodes that compute some values, and what they read. The structure of a piece is
hashed as it is collected, so that the same one is recognised the next time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from tenfold.base.devices import Device
from tenfold.flat.ir import TensorType
from tenfold.trace.graph import Node, Value


class Trace:
    """A piece of the Trace: nodes in order, the leaves they read, and which values are its outputs."""

    __slots__ = ("device", "key", "leaves", "loose", "nodes", "outputs")

    def __init__(
        self,
        nodes: list[Node],
        leaves: list[Value],
        outputs: list[tuple[int, int]],
        key: tuple[Any, ...],
        device: Device,
    ):
        self.device = device
        self.nodes = nodes
        self.leaves = leaves
        self.outputs = outputs  # (node, result), or (-1 - leaf, 0)
        self.key = key
        self.loose: tuple[tuple[Any, ...], list[int | float]] | None = None  # memo of late_numbers.py

    def release(self, places: Iterable[int]) -> None:
        """Replace these leaves by values without data. The caller that runs the program holds the data."""
        others = {self.leaves[i]: Value(self.leaves[i].type, self.leaves[i].device) for i in places}
        self.leaves = [others.get(leaf, leaf) for leaf in self.leaves]
        for node in self.nodes:
            if not others.keys().isdisjoint(node.inputs):
                node.inputs = tuple([others.get(value, value) for value in node.inputs])

    def type_of(self, place: int, index: int) -> TensorType:
        """The type of an output."""
        return self.nodes[place].callee.result_types[index] if place >= 0 else self.leaves[-1 - place].type


def collect(
    targets: Sequence[Value],
    also: Callable[[dict[Value, int]], list[Value]] | None = None,
    inside: Collection[Node] | None = None,
) -> tuple[Trace, list[Value]]:
    """The piece that computes `targets`, and the values of its outputs, in order.

    `also` receives every value that the piece both computes and uses, with its number of uses, and returns
    those that become outputs too. Further results of its nodes that somebody still holds become outputs as
    well. With `inside`, the piece consists of these nodes alone; what other nodes computed is a leaf.
    """
    places, leaves, uses, key = _walk(targets, inside)
    outputs_of = list(targets)
    if also:
        known = set(targets)
        outputs_of += [value for value in also(uses) if value not in known]
        outputs_of += _siblings(places, outputs_of, uses)
    outputs = []
    for value in outputs_of:
        if value.buffer is None and value.node in places:
            outputs.append((places[value.node], value.index))
        else:
            outputs.append((-1 - leaves.setdefault(value, len(leaves)), 0))
    key.append(-1 << 40)
    for value, (place, index) in zip(outputs_of, outputs, strict=True):
        # A leaf that is an output as it is has no callee to tell its type.
        key += (place << 20 | index,) if place >= 0 else (place, value.type)
    return Trace(list(places), list(leaves), outputs, tuple(key), outputs_of[0].device), outputs_of


def _siblings(nodes: Iterable[Node], known: Sequence[Value], uses: dict[Value, int]) -> list[Value]:
    """Results of these nodes that nothing in the piece uses, but that are still alive because somebody holds
    them."""
    outputs = set(known)
    held = []
    for node in nodes:
        for reference in node.results:
            value = reference()
            if value is not None and value.buffer is None and value not in uses and value not in outputs:
                held.append(value)
    return held


def _walk(
    targets: Sequence[Value], inside: Collection[Node] | None
) -> tuple[dict[Node, int], dict[Value, int], dict[Value, int], list[Any]]:
    """All nodes behind the targets, each after its inputs, with its place; the leaves; each value's uses; the
    structure as numbers. A function, so that no name of its frame holds a value when uses are counted."""
    places: dict[Node, int] = {}
    leaves: dict[Value, int] = {}
    uses: dict[Value, int] = {}
    key: list[Any] = []  # numbers, and types
    entered: set[Node] = set()  # nodes below those on the stack that they depend on
    stack = [
        target.node
        for target in reversed(targets)
        if target.buffer is None and target.node is not None and (inside is None or target.node in inside)
    ]
    while stack:
        node = stack[-1]
        if node in places:
            stack.pop()
            continue
        if node not in entered:
            entered.add(node)
            waiting = [
                operand.node
                for operand in node.inputs
                if operand.buffer is None
                and operand.node is not None
                and operand.node not in places
                and (inside is None or operand.node in inside)
            ]
            if node.path:
                waiting += [step for step in node.path if step not in places]
            if waiting:
                waiting.reverse()
                stack += waiting
                continue
        stack.pop()
        places[node] = len(places)
        key.append(node.callee.id)
        for operand in node.inputs:
            if operand.buffer is None and operand.node in places:
                uses[operand] = uses.get(operand, 0) + 1
                key.append(places[operand.node] << 20 | operand.index)
            else:
                key.append(-1 - leaves.setdefault(operand, len(leaves)))
        for on_path in node.path:
            key.append(places[on_path])
    return places, leaves, uses, key
