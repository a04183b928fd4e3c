"""Pieces of the Trace to run: which nodes compute what is wanted, and what they read. The structure of one is
hashed as it is collected, so that the same program is found again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tenfold.base.devices import Device
from tenfold.flat.ir import TensorType
from tenfold.trace.graph import Node, Value


class Program:
    """A piece of the trace to run: nodes in order, the leaves they read, the values they must give back."""

    __slots__ = ("device", "key", "leaves", "nodes", "outputs")

    def __init__(
        self,
        nodes: list[Node],
        leaves: list[Value],
        outputs: list[tuple[int, int]],
        key: tuple[int, ...],
        device: Device,
    ):
        self.device = device
        self.nodes = nodes
        self.leaves = leaves
        self.outputs = outputs  # (node, result), or (-1 - leaf, 0)
        self.key = key

    def type_of(self, place: int, index: int) -> TensorType:
        """The type of an output."""
        return self.nodes[place].signature.result_types[index] if place >= 0 else self.leaves[-1 - place].type


def collect(
    targets: Sequence[Value], also: Callable[[dict[Value, int]], list[Value]] | None = None
) -> tuple[Program, list[Value]]:
    """The program that computes `targets`, and the values it gives back, in order.

    `also` is handed every value that the program computes for its own use, with the number of uses, and names
    those that are to be given back beside the targets; as are other results of its nodes that somebody holds.
    """
    places, leaves, uses, key = _walk(targets)
    given = list(targets)
    if also:
        known = set(targets)
        given += [each for each in also(uses) if each not in known]
        given += _siblings(places, given, uses)
    outputs = []
    for each in given:
        if each.buffer is None and each.node is not None:
            outputs.append((places[each.node], each.index))
        else:
            outputs.append((-1 - leaves.setdefault(each, len(leaves)), 0))
    key.append(-1 << 40)
    for each, (place, index) in zip(given, outputs, strict=True):
        # A leaf that is given back as it is has no signature to tell its type, which is interned.
        key += (place << 20 | index,) if place >= 0 else (place, id(each.type))
    return Program(list(places), list(leaves), outputs, tuple(key), given[0].device), given


def _siblings(nodes: Iterable[Node], given: Sequence[Value], uses: dict[Value, int]) -> list[Value]:
    """Results of the nodes that are neither used nor given, and yet alive: so somebody holds them."""
    known = set(given)
    found = []
    for node in nodes:
        for reference in node.results:
            value = reference()
            if value is not None and value.buffer is None and value not in uses and value not in known:
                found.append(value)
    return found


def _walk(
    targets: Sequence[Value],
) -> tuple[dict[Node, int], dict[Value, int], dict[Value, int], list[int]]:
    """All nodes behind the targets, each after its inputs, with its place; the leaves; each value's uses; the
    structure as numbers. A function, so that no name of its frame holds a value when uses are counted."""
    places: dict[Node, int] = {}
    leaves: dict[Value, int] = {}
    uses: dict[Value, int] = {}
    key: list[int] = []
    stack = [each.node for each in reversed(targets) if each.buffer is None and each.node is not None]
    while stack:
        node = stack[-1]
        if node in places:
            stack.pop()
            continue
        waiting = [
            each.node
            for each in node.inputs
            if each.buffer is None and each.node is not None and each.node not in places
        ]
        if node.path:
            waiting += [each for each in node.path if each not in places]
        if waiting:
            waiting.reverse()
            stack += waiting
            continue
        stack.pop()
        places[node] = len(places)
        key.append(node.signature.id)
        for each in node.inputs:
            if each.buffer is None and each.node is not None:
                uses[each] = uses.get(each, 0) + 1
                key.append(places[each.node] << 20 | each.index)
            else:
                key.append(-1 - leaves.setdefault(each, len(leaves)))
        for on_path in node.path:
            key.append(places[on_path])
    return places, leaves, uses, key
