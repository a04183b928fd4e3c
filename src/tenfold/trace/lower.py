"""Trace to FlatIR: each node's fragment, inlined in order, its place in the user's program on every op."""

from __future__ import annotations

from tenfold import flat
from tenfold.trace.graph import Program


def lower(program: Program) -> flat.Function:
    """The program as one FlatIR function: its leaves are the parameters, its outputs the results."""
    params = [flat.Value(each.type) for each in program.leaves]
    for i, param in enumerate(params):
        param.name = f"p{i}"
    leaves = dict(zip(program.leaves, params, strict=True))
    places = {node: i for i, node in enumerate(program.nodes)}
    computed: list[list[flat.Value]] = []
    for i, node in enumerate(program.nodes):
        arguments = [
            leaves[each] if each in leaves else computed[places[each.node]][each.index]  # type: ignore[index]
            for each in node.inputs
        ]
        results = node.signature.fragment.inline(arguments, node.source)
        for index, result in enumerate(results):
            if result.name is None:
                result.name = f"t{i}" if len(results) == 1 else f"t{i}_{index}"
        computed.append(results)
    outputs = [
        computed[place][index] if place >= 0 else params[-1 - place] for place, index in program.outputs
    ]
    return flat.Function(params, outputs, "main")
