"""The gradient of a single node, on values that hooks may have packed. A sweep records it where hooks see the
gradients at a node. Gradients of whole pieces of the Trace are in `gradient.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.flat.data_ops import (
    BroadcastInDim,
    Concatenate,
    DynamicSlice,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from tenfold.flat.elementwise import Convert
from tenfold.flat.ir import in_order, replay
from tenfold.ops.callee import Callee, Program, programs
from tenfold.trace.gradient import backward_of
from tenfold.trace.graph import Node, Value, call_program

MOVES = (BroadcastInDim, Concatenate, Convert, DynamicSlice, Pad, Reshape, Reverse, Slice, Transpose)


def wanted_of(node: Node) -> tuple[bool, ...]:
    """Which of a node's inputs gradients flow to."""
    return tuple([operand.origin is not None for operand in node.inputs])


def saved_of(node: Node) -> tuple[list[int], list[int]]:
    """The inputs and the results that the gradient of a node needs, by their places. What lies between them
    it computes again."""
    callee = node.callee
    present = (True,) * len(callee.result_types)
    saves = backward_of(callee, present, wanted_of(node)).saves
    params, results = callee.fragment.params, callee.fragment.results
    between = [save for save in saves if save not in params and save not in results]
    needed = {*saves, *[operand for op in in_order(between) for operand in op.operands]}
    return (
        [i for i, param in enumerate(params) if param in needed],
        [i for i, result in enumerate(results) if result in saves and result not in params],
    )


def derived_of(node: Node) -> set[int]:
    """The places of inputs from which the gradient needs more than their own data: values that the op
    computes from them on the way to its results. Data that is only moved or converted counts as their own."""
    callee = node.callee
    fragment, results = callee.fragment, set(callee.fragment.results)
    saves = backward_of(callee, (True,) * len(callee.result_types), wanted_of(node)).saves
    held = {param: {i} for i, param in enumerate(fragment.params)}  # what moved inputs hold
    computed: dict[flat.Value, set[int]] = {}
    for op in fragment.ops:
        sources = set[int]()
        for operand in op.operands:
            sources |= held.get(operand, set()) | computed.get(operand, set())
        moved = isinstance(op, MOVES) and not any(operand in computed for operand in op.operands)
        into = held if moved else computed
        into.update({value: sources for value in op.results if value not in results})
    return set[int]().union(*[computed[save] for save in saves if save in computed])


def pull(
    node: Node,
    cotangents: Sequence[Value | None],
    where: Any,
    inputs: Sequence[Value],
    saved: dict[int, Value],
) -> list[Value | None]:
    """The cotangent of each input of a node, None where gradients do not flow. `inputs` are the node's own,
    or stand for them; `saved` has some of its results, by place."""
    present = tuple([cotangent is not None for cotangent in cotangents])
    wanted = wanted_of(node)
    key = ("pull", node.callee.id, present, wanted, tuple(saved))
    program = programs.get(key, lambda: _program(node.callee, present, wanted, list(saved)))
    offered = [*inputs, *saved.values(), *[cotangent for cotangent in cotangents if cotangent is not None]]
    results = iter(call_program(program, offered, where, offered[-1].device))
    return [next(results) if is_wanted else None for is_wanted in wanted]


def _program(
    callee: Callee, present: tuple[bool, ...], wanted: tuple[bool, ...], saved: Sequence[int]
) -> Program:
    fragment, backward = callee.fragment, backward_of(callee, present, wanted)
    inputs = [flat.Value(param.type) for param in fragment.params]
    values = dict(zip(fragment.params, inputs, strict=True))
    kept = [flat.Value(fragment.results[i].type) for i in saved]
    given = dict(zip([fragment.results[i] for i in saved], kept, strict=True))
    for op in fragment.ops:
        replay([op], values, None, True)
        values.update({result: given[result] for result in op.results if result in given})
    values.update(given)
    starts = []
    for param in backward.cotangents:
        if param is not None:
            values[param] = flat.Value(param.type)
            starts.append(values[param])
    replay(backward.ops, values, None, True)
    results = []
    for param, result, is_wanted in zip(fragment.params, backward.results, wanted, strict=True):
        if is_wanted:
            results.append(flat.full_like(param, 0) if result is None else values.get(result, result))
    return Program.trimmed("gradient", [*inputs, *kept, *starts], results)
