"""Programs that differ only in Python numbers, made into one program that takes the numbers as inputs.

`x[i]` in a loop, or a learning rate that changes, would otherwise be compiled for every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.trace.collect import Trace, collect
from tenfold.trace.gradient import GradientNode
from tenfold.trace.graph import Node, Value


class Opened:
    """A program whose numbers are inputs. `order` says where each input comes from: a leaf of the original
    program, or past those, its numbers in the order of its nodes."""

    def __init__(self, program: Trace, order: Sequence[int]):
        self.program = program
        self.order = tuple(order)


def loose_key(program: Trace) -> tuple[tuple[Any, ...], list[int | float]]:
    """The program's key without its numbers, and the numbers."""
    if program.loose is None:
        program.loose = _loosened(program)
    return program.loose


def _loosened(program: Trace) -> tuple[tuple[Any, ...], list[int | float]]:
    key = list(program.key)
    numbers: list[int | float] = []
    place = 0
    for node in program.nodes:
        callee, own = node.callee.loose
        key[place] = callee.id
        numbers += own
        place += 1 + len(node.inputs) + len(node.path)
    return tuple(key), numbers


def varies(program: Trace) -> bool:
    """Whether nodes of this program differ from each other in their numbers alone, as those of a loop's
    rounds do. Then the next program will bring other numbers again."""
    callees: dict[int, int] = {}
    for node in program.nodes:
        callee, numbers = node.callee.loose
        if numbers and callees.setdefault(callee.id, node.callee.id) != node.callee.id:
            return True
    return False


def open_numbers(program: Trace, device: Device) -> Opened:
    """The program that serves all programs with its loose key."""
    places = {leaf: i for i, leaf in enumerate(program.leaves)}
    results: dict[tuple[Node, int], Value] = {}
    rewritten: dict[Node, Node] = {}

    def opened(value: Value) -> Value:
        if value in places:
            return value
        assert value.node is not None
        key = (value.node, value.index)
        if key not in results:
            results[key] = Value(value.type, device, rewritten[value.node], value.index)
        return results[key]

    for node in program.nodes:
        callee, numbers = node.callee.loose
        if isinstance(node, GradientNode):
            path = tuple([rewritten[step] for step in node.path])
            rewritten[node] = GradientNode(node.callee, tuple(map(opened, node.inputs)), node.source, path)
            continue
        late = [
            Value(param.type, device, buffer=np.asarray(0))
            for param in callee.fragment.params[len(node.inputs) :]
        ]
        assert len(late) == len(numbers)
        for number in late:
            places[number] = len(places)
        rewritten[node] = Node(callee, (*map(opened, node.inputs), *late), node.source)
    targets = []
    for place, index in program.outputs:
        if place >= 0:
            node = program.nodes[place]
            targets.append(opened(Value(node.callee.result_types[index], device, node, index)))
        else:
            targets.append(program.leaves[-1 - place])
    late_program, _ = collect(targets)
    return Opened(late_program, [places[leaf] for leaf in late_program.leaves])
