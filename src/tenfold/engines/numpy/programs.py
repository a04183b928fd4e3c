"""Whole programs of the Trace on tier 0.

A program is planned fragment by fragment: the FlatIR of each node, which its callee keeps, so that a new
program of known parts costs little more than what it computes. One with gradients is lowered as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.bounded import Bounded
from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.engines.numpy.kernels import Array
from tenfold.engines.numpy.plan import Builder, Plan, plan, run_plan
from tenfold.trace.collect import Trace
from tenfold.trace.lower import lower

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
    if any(node.path for node in program.nodes):
        return plan(lower(program))
    builder = Builder()
    leaves: dict[Any, int] = {leaf: builder.slot() for leaf in program.leaves}
    builder.arity = builder.count
    computed: dict[Any, list[int]] = {}
    for node in program.nodes:
        fragment = node.callee.fragment
        places = {
            param: leaves[each] if each in leaves else computed[each.node][each.index]
            for param, each in zip(fragment.params, node.inputs, strict=True)
        }
        try:
            builder.ops(fragment.ops, places, node.source)
        except TenfoldError as error:
            raise error.located(node.callee.name, node.source) from None
        computed[node] = [places[each] for each in fragment.results]
    return builder.closed(
        [
            computed[program.nodes[place]][index] if place >= 0 else leaves[program.leaves[-1 - place]]
            for place, index in program.outputs
        ]
    )
