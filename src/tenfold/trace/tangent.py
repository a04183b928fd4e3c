"""Tangents in the Trace: for a node, a second node that computes the tangents of its results from those of
its inputs.

While a level of forward mode is open (see `autograd/forward_ad.py`), every node whose inputs have tangents is
followed by a node whose FlatIR is what `flat/jvp.py` makes of the first one's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import flat
from tenfold.flat.ir import in_order
from tenfold.flat.jvp import tangents as pushed_forward
from tenfold.ops.callee import Callee, Program, programs
from tenfold.trace.graph import Node, Value, call_program


def push(node: Node, tangents: Sequence[Value | None]) -> list[Value | None]:
    """The tangents of a node's results, given those of its inputs; None for a result without one."""
    moving = tuple([tangent is not None for tangent in tangents])
    key = ("jvp", node.callee.id, moving)
    program, moved = programs.get(key, lambda: _program(node.callee, moving))
    if not any(moved):
        return [None] * len(moved)
    offered = [*node.inputs, *[tangent for tangent in tangents if tangent is not None]]
    results = iter(call_program(program, offered, node.source, offered[-1].device))
    return [next(results) if moves else None for moves in moved]


def _program(callee: Callee, moving: Sequence[bool]) -> tuple[Program, list[bool]]:
    """What computes the tangents, and which results have one."""
    fragment = callee.fragment
    primals = [flat.Value(param.type) for param in fragment.params]
    along = [
        flat.Value(primal.type) if moves else None for primal, moves in zip(primals, moving, strict=True)
    ]
    results = fragment.inline(primals, None, whole=True)
    pushed = pushed_forward(in_order(results), primals, along, results)
    kept = [tangent if flows else None for tangent, flows in zip(pushed, callee.flows, strict=True)]
    # What gradients flow to has a tangent, if only of zeros: that of floor, or of random numbers.
    bits = sum(1 << i for i, moves in enumerate(moving) if moves)
    kept = [
        flat.full_like(result, 0) if tangent is None and reaches & bits else tangent
        for tangent, result, reaches in zip(kept, results, callee.reached, strict=True)
    ]
    params = [*primals, *[tangent for tangent in along if tangent is not None]]
    tangents = [tangent for tangent in kept if tangent is not None]
    program = Program.trimmed("jvp", params, tangents, random=callee.random)
    return program, [tangent is not None for tangent in kept]
