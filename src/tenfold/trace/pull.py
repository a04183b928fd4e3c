"""The gradient of one node by itself, on values that may have been kept elsewhere: what a sweep records where
Python has a say at a node. All other gradients are those of whole pieces of the Trace: see `gradient.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.base.bounded import remember
from tenfold.flat.ir import in_order, replay
from tenfold.ops.table import Signature
from tenfold.trace.gradient import GRADIENT, backward_of
from tenfold.trace.graph import Node, Value, enter

# By signature, which cotangents are given and wanted, and which results were kept: what computes it, and what
# of inputs, kept results and cotangents it takes.
_known: dict[Any, tuple[Signature, list[int]]] = {}


def wanted_of(node: Node) -> tuple[bool, ...]:
    """Which of a node's inputs gradients flow to."""
    return tuple([each.origin is not None for each in node.inputs])


def saved_of(node: Node) -> tuple[list[int], list[int]]:
    """The inputs and the results that the gradient of a node needs to know, by their places. What lies
    between them it computes again."""
    signature = node.signature
    given = (True,) * len(signature.result_types)
    saves = backward_of(signature, given, wanted_of(node)).saves
    params, results = signature.fragment.params, signature.fragment.results
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
    kept: dict[int, Value],
) -> list[Value | None]:
    """The cotangent of each input of a node, None where gradients do not flow. `inputs` are the node's own,
    or stand for them; `kept` has results of its, by place."""
    given = tuple([each is not None for each in cotangents])
    wanted = wanted_of(node)
    key = (node.signature.id, given, wanted, tuple(kept))
    found = _known.get(key)
    if found is None:
        found = remember(_known, key, _signature(node.signature, given, wanted, list(kept)))
    signature, used = found
    available = [*inputs, *kept.values(), *[each for each in cotangents if each is not None]]
    made = Node(signature, tuple([available[i] for i in used]), where)
    remaining = iter(enter(made, available[-1].device))
    return [next(remaining) if is_wanted else None for is_wanted in wanted]


def _signature(
    signature: Signature, given: tuple[bool, ...], wanted: tuple[bool, ...], kept: Sequence[int]
) -> tuple[Signature, list[int]]:
    fragment, backward = signature.fragment, backward_of(signature, given, wanted)
    inputs = [flat.Value(each.type) for each in fragment.params]
    values = dict(zip(fragment.params, inputs, strict=True))
    replay(fragment.ops, values, None, True)
    held = [flat.Value(fragment.results[i].type) for i in kept]
    values.update(zip([fragment.results[i] for i in kept], held, strict=True))
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
    params = [*inputs, *held, *starts]
    # No gradient of the gradient comes to what it does not depend on.
    needed = {*results, *[operand for op in in_order(results) for operand in op.operands]}
    used = [i for i, each in enumerate(params) if each in needed]
    types = tuple([params[i].type for i in used])
    return Signature(GRADIENT, types, (), flat.Function([params[i] for i in used], results, "gradient")), used
