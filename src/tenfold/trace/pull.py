"""The gradient of one node by itself, on values that may have been packed away: what a sweep records where
hooks see the gradients at a node. Other gradients are of whole pieces of the Trace: see `gradient.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.flat.ir import in_order, replay
from tenfold.ops.callee import Callee, Program, programs
from tenfold.trace.gradient import backward_of
from tenfold.trace.graph import Node, Value, call_program


def wanted_of(node: Node) -> tuple[bool, ...]:
    """Which of a node's inputs gradients flow to."""
    return tuple([each.origin is not None for each in node.inputs])


def saved_of(node: Node) -> tuple[list[int], list[int]]:
    """The inputs and the results that the gradient of a node needs, by their places. What lies between them
    it computes again."""
    callee = node.callee
    given = (True,) * len(callee.result_types)
    saves = backward_of(callee, given, wanted_of(node)).saves
    params, results = callee.fragment.params, callee.fragment.results
    between = [each for each in saves if each not in params and each not in results]
    needed = {*saves, *[operand for op in in_order(between) for operand in op.operands]}
    return (
        [i for i, each in enumerate(params) if each in needed],
        [i for i, each in enumerate(results) if each in saves and each not in params],
    )


def pull(
    node: Node,
    cotangents: Sequence[Value | None],
    where: Any,
    inputs: Sequence[Value],
    saved: dict[int, Value],
) -> list[Value | None]:
    """The cotangent of each input of a node, None where gradients do not flow. `inputs` are the node's own,
    or stand for them; `saved` has some of its results, by place."""
    given = tuple([each is not None for each in cotangents])
    wanted = wanted_of(node)
    key = ("pull", node.callee.id, given, wanted, tuple(saved))
    program = programs.get(key, lambda: _program(node.callee, given, wanted, list(saved)))
    offered = [*inputs, *saved.values(), *[each for each in cotangents if each is not None]]
    results = iter(call_program(program, offered, where, offered[-1].device))
    return [next(results) if is_wanted else None for is_wanted in wanted]


def _program(
    callee: Callee, given: tuple[bool, ...], wanted: tuple[bool, ...], saved: Sequence[int]
) -> Program:
    fragment, backward = callee.fragment, backward_of(callee, given, wanted)
    inputs = [flat.Value(each.type) for each in fragment.params]
    values = dict(zip(fragment.params, inputs, strict=True))
    replay(fragment.ops, values, None, True)
    kept = [flat.Value(fragment.results[i].type) for i in saved]
    values.update(zip([fragment.results[i] for i in saved], kept, strict=True))
    starts = []
    for param in backward.cotangents:
        if param is not None:
            values[param] = flat.Value(param.type)
            starts.append(values[param])
    replay(backward.ops, values, None, True)
    results = []
    for param, each, is_wanted in zip(fragment.params, backward.results, wanted, strict=True):
        if is_wanted:
            results.append(flat.full_like(param, 0) if each is None else values.get(each, each))
    return Program.trimmed("gradient", [*inputs, *kept, *starts], results)
