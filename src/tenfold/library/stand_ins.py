"""Functions of tensors inside lowerings: they are called on tensors that stand for FlatIR values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenfold import flat
from tenfold.base.devices import Device
from tenfold.base.errors import TraceError
from tenfold.ops.table import SLOT
from tenfold.tensor import Tensor
from tenfold.trace import graph

__all__ = ["lowered", "result_types", "slots_filled", "taken_apart"]


def lowered(function: Callable[..., Sequence[Any]], values: Sequence[flat.Value]) -> list[Any]:
    """A function of tensors on FlatIR values: it is recorded apart from all else, and its ops are put here.

    None among its results stays None.
    """
    device = Device("cpu").resolved
    leaves = [graph.Value(each.type, device) for each in values]
    with graph.outside():
        level, graph.level = graph.level, None
        enabled, graph.mode.enabled = graph.mode.enabled, False
        try:
            results = function(*[Tensor(each) for each in leaves])
            outputs = [None if each is None else each.current() for each in results]
        finally:
            graph.level, graph.mode.enabled = level, enabled
    known: dict[Any, flat.Value] = dict(zip(leaves, values, strict=True))

    def value(of: graph.Value) -> flat.Value:
        pending = [of]
        while pending:
            last = pending[-1]
            if last in known or (last.node, last.index) in known:
                pending.pop()
                continue
            if last.node is None:
                if last.buffer is None or last.type.numel > 1024:
                    raise TraceError(
                        "a function of a custom op used a tensor from outside",
                        help="make it there, by tn.tensor or tn.full, or pass it as an argument",
                    )
                known[last] = flat.constant(Tensor(last).numpy(), last.type.dtype)
                continue
            missing = [
                each
                for each in last.node.inputs
                if each not in known and (each.node, each.index) not in known
            ]
            if missing:
                pending += missing
                continue
            inputs = [
                known[each] if each in known else known[each.node, each.index] for each in last.node.inputs
            ]
            made = last.node.signature.fragment.inline(inputs, last.node.source, whole=True)
            known.update(((last.node, i), each) for i, each in enumerate(made))
        return known[of] if of in known else known[of.node, of.index]

    return [None if each is None else value(each) for each in outputs]


def result_types(fake: Callable[..., Any], arguments: Sequence[Any]) -> list[flat.TensorType]:
    """What the results look like, as `register_fake` tells."""
    slots, values = taken_apart(arguments)
    device = Device("cpu").resolved
    with graph.outside():
        tensors = [Tensor(graph.Value(each.type, device)) for each in values]
        results = fake(*slots_filled(slots, iter(tensors)))
        several = results if isinstance(results, (tuple, list)) else (results,)
        return [each.current().type for each in several]


def taken_apart(arguments: Sequence[Any]) -> tuple[list[Any], list[flat.Value]]:
    """The arguments with SLOT for each value, and the values."""
    values: list[flat.Value] = []

    def slot(each: Any) -> Any:
        if isinstance(each, flat.Value):
            values.append(each)
            return SLOT
        return [slot(part) for part in each] if isinstance(each, (tuple, list)) else each

    return [slot(each) for each in arguments], values


def slots_filled(slots: Sequence[Any], values: Iterator[Any], **others: Any) -> list[Any]:
    """The arguments with values in the SLOTs; `plain=` stands for every other argument, where it is given."""

    def fill(each: Any) -> Any:
        if each is SLOT:
            return next(values)
        return [fill(part) for part in each] if isinstance(each, list) else others.get("plain", each)

    return [fill(each) for each in slots]
