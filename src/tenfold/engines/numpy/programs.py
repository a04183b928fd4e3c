"""Whole programs of the Trace on tier 0.

A program is planned fragment by fragment: the FlatIR of each node, which its callee keeps, and that of its
gradient, which the callee keeps as well. So a new program of known parts costs little more than what it
computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.bounded import Bounded
from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.engines.numpy.kernels import Array
from tenfold.engines.numpy.plan import Builder, Plan, Slots, run_plan
from tenfold.flat.ir import TensorType
from tenfold.trace.collect import Trace
from tenfold.trace.gradient import NOTHING, GradientNode, backward_of

_plans = Bounded()


def run_program(program: Trace, arrays: Sequence[Array]) -> list[Array]:
    """A program's outputs, computed from the data of its leaves."""
    if program.device.type != "cpu":
        raise UnsupportedError(
            f"the NumPy engine computes on the CPU, not on {program.device}",
            help="move the tensors with .cpu(), or choose tn.set_engine('xla')",
        )
    made = planned_once(program)
    with np.errstate(all="ignore"):
        return run_plan(made, tuple(arrays))


def planned_once(program: Trace) -> Plan:
    """The steps of a program, remembered."""
    return _plans.get(program.key, lambda: planned(program))


def planned(program: Trace) -> Plan:
    """The steps of a program."""
    builder = Builder()
    leaves: dict[Any, int] = {leaf: builder.slot() for leaf in program.leaves}
    builder.arity = builder.count
    frames: dict[Any, Slots] = {}  # for each node, where the values of its fragment are
    computed: dict[Any, list[int]] = {}
    for node in program.nodes:
        given = [leaves[each] if each in leaves else computed[each.node][each.index] for each in node.inputs]
        if isinstance(node, GradientNode):
            computed[node] = _gradient(builder, node, given, frames)
            continue
        fragment = node.callee.fragment
        frame = frames[node] = dict(zip(fragment.params, given, strict=True))
        try:
            builder.ops(fragment.ops, frame, node.source)
        except TenfoldError as error:
            raise error.located(node.callee.name, node.source) from None
        computed[node] = [frame[each] for each in fragment.results]
    return builder.closed(
        [
            computed[program.nodes[place]][index] if place >= 0 else leaves[program.leaves[-1 - place]]
            for place, index in program.outputs
        ]
    )


def _gradient(
    builder: Builder, node: GradientNode, cotangents: list[int], frames: dict[Any, Slots]
) -> list[int]:
    """Add the steps of a gradient: those of the gradient of each node on its path, from the last to the
    first. Gives where the cotangents are that it computes."""
    wiring = node.callee.wiring
    found: dict[int, int] = {}  # by their numbers in the wiring, where cotangents are

    def add(number: int, place: int, type: TensorType) -> None:
        found[number] = builder.sum(found[number], place, type) if number in found else place

    types = [each.type for each in node.inputs]
    for number, place, type in zip(wiring.starts, cotangents, types, strict=True):
        add(number, place, type)
    for k in range(len(node.path) - 1, -1, -1):
        forward, results = node.path[k], wiring.results[k]
        given = tuple([number in found for number in results])
        if not any(given):
            continue
        wanted = tuple([number != NOTHING for number in wiring.inputs[k]])
        frame = frames[forward]
        try:
            backward = backward_of(forward.callee, given, wanted)
            for param, number in zip(backward.cotangents, results, strict=True):
                if param is not None:
                    frame[param] = found[number]
            builder.ops(backward.ops, frame, forward.source)
        except TenfoldError as error:
            raise error.located(forward.callee.name, forward.source) from None
        for number, result in zip(wiring.inputs[k], backward.results, strict=True):
            if result is not None:
                add(number, frame[result], result.type)
    return [
        found[number] if number in found else builder.constant(np.zeros(type.shape, type.dtype.numpy))
        for number, type in zip(wiring.wants, node.callee.result_types, strict=True)
    ]
