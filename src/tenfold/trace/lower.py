"""Trace to FlatIR: each node's fragment, inlined in order, its place in the user's program on every op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold import flat
from tenfold.base.late import on_first_use
from tenfold.flat.ir import replay
from tenfold.trace.collect import Trace
from tenfold.trace.detours import NONE, Detours, Place
from tenfold.trace.gradient import GradientNode
from tenfold.trace.graph import Node

with on_first_use(__name__):
    from tenfold.flat.hoisting import hoisted


Frame = dict[flat.Value, flat.Value]
OPEN = "open"  # the `kind` of device that lowerings are told where sizes are open


def written_at(node: Node, gradient: Node | None) -> Any:
    """The place of a node's ops in the user's program; those of its gradient stand where it does itself."""
    return node.source


def lower(
    program: Trace,
    whole: bool = False,
    place: Callable[[Node, Node | None], Any] = written_at,
    kind: str | None = None,
    detours: Detours = NONE,
) -> flat.Function:
    """The program as one FlatIR function: its leaves are the parameters, its outputs the results.

    Composites stay `whole` where the function is to be transformed further. `place` gives the source that
    is noted on the ops of a node, or on those that a gradient node makes of it. Composites that have other
    bodies for other kinds of device take the one for `kind`, the program's own by default. Gradients of a
    `whole` program make `detours`.
    """
    params = [flat.Value(leaf.type) for leaf in program.leaves]
    for i, param in enumerate(params):
        param.name = f"p{i}"
    leaves = dict(zip(program.leaves, params, strict=True))
    places = {node: i for i, node in enumerate(program.nodes)}
    differentiated = {step for node in program.nodes for step in node.path}
    frames: dict[Node, Frame] = {}  # for each of those, what became of its fragment's values
    computed: list[list[flat.Value]] = []
    device = kind or program.device.type
    if device == "cuda" and program.device.mesh is None:
        device = "triton"  # which XLA's partitioner knows nothing of

    def at(place: Place) -> flat.Value:
        return computed[place[0]][place[1]] if place[0] >= 0 else params[-1 - place[0]]

    for i, node in enumerate(program.nodes):
        arguments = [
            leaves[operand] if operand in leaves else computed[places[operand.node]][operand.index]  # type: ignore[index]
            for operand in node.inputs
        ]
        if detours.operands:
            arguments = [
                flat.beside(argument, at(detours.operands[operand]))
                if operand in detours.operands
                else argument
                for operand, argument in zip(node.inputs, arguments, strict=True)
            ]
        if isinstance(node, GradientNode):
            results = _gradient(node, frames, arguments, whole, device, place)
        elif node in differentiated:
            fragment = node.callee.fragment
            frame = frames[node] = dict(zip(fragment.params, arguments, strict=True))
            replay(fragment.ops, frame, place(node, None), whole, device)
            results = [frame.get(result, result) for result in fragment.results]
        else:
            results = node.callee.fragment.inline(arguments, place(node, None), whole=whole, device=device)
        if whole:
            results = _stopped(node, results)
        for index, result in enumerate(results):
            if result.name is None:
                result.name = f"t{i}" if len(results) == 1 else f"t{i}_{index}"
        computed.append(results)
    outputs = [
        flat.beside(at(place), at(detours.outputs[i])) if i in detours.outputs else at(place)
        for i, place in enumerate(program.outputs)
    ]
    function = flat.Function(params, outputs, "main")
    return function if whole else hoisted(function, device)


def _stopped(node: Node, results: list[flat.Value]) -> list[flat.Value]:
    """A node's results in a function that is to be differentiated: constants where Python said so, by
    `detach` to all derivatives, and by `no_grad` to gradients."""
    stopped = []
    for result, flows in zip(results, node.callee.flows, strict=True):
        if result.dtype.kind in ("float", "complex"):
            if not flows:
                result = flat.stop_gradient(result)
            elif node.cut:
                result = flat.untracked(result)
        stopped.append(result)
    return stopped


def _gradient(
    node: GradientNode,
    frames: dict[Node, Frame],
    cotangents: list[flat.Value],
    whole: bool,
    device: str,
    place: Callable[[Node, Node | None], Any],
) -> list[flat.Value]:
    callees = [step.callee for step in node.path]
    sources = [place(step, node) for step in node.path]
    on_path = [frames[step] for step in node.path]
    types = node.callee.result_types
    return node.callee.wiring.lower(callees, on_path, cotangents, types, sources, whole, device)
