"""Functions of tensors inside lowerings: they are called on tensors that stand for FlatIR values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenfold import flat
from tenfold.base.devices import Device
from tenfold.base.errors import TraceError
from tenfold.ops.table import SLOT
from tenfold.tensor import Tensor
from tenfold.trace import tree
from tenfold.trace.context import outside
from tenfold.trace.graph import Value
from tenfold.trace.lower import lower
from tenfold.trace.record import Policy, record

__all__ = ["lowered", "result_types", "slots_filled", "taken_apart"]


def lowered(function: Callable[..., Sequence[Any]], values: Sequence[flat.Value]) -> list[Any]:
    """A function of tensors on FlatIR values: it is recorded, and its ops are put here.

    None among its results stays None.
    """
    device = Device("cpu").resolved
    stand_ins = [Tensor(Value(value.type, device)) for value in values]
    with outside():
        policy = Policy("a custom op", differentiates=True)
        recording = record(lambda tensors: list(function(*tensors)), stand_ins, policy)
    inputs = [values[each] if isinstance(each, int) else _constant(each) for each in recording.inputs]
    results = lower(recording.trace, whole=True).inline(inputs, None, whole=True)
    return tree.unflatten(recording.structure, iter(results))


def _constant(value: Any) -> flat.Value:
    """A small tensor that the function made of Python's numbers."""
    if value.buffer is None or value.type.numel > 1024:
        raise TraceError(
            "a function of a custom op used a tensor from outside",
            help="make it there, by tn.tensor or tn.full, or pass it as an argument",
        )
    return flat.constant(Tensor(value).numpy(), value.type.dtype)


def result_types(
    fake: Callable[[list[Any]], Sequence[Tensor]], arguments: Sequence[Any]
) -> list[flat.TensorType]:
    """What the results look like, as `register_fake` tells."""
    slots, values = taken_apart(arguments)
    device = Device("cpu").resolved
    with outside():
        tensors = [Tensor(Value(value.type, device)) for value in values]
        return [each.current().type for each in fake(slots_filled(slots, iter(tensors)))]


def taken_apart(arguments: Sequence[Any]) -> tuple[list[Any], list[flat.Value]]:
    """The arguments with SLOT for each value, and the values."""
    values: list[flat.Value] = []

    def slot(each: Any) -> Any:
        if isinstance(each, flat.Value):
            values.append(each)
            return SLOT
        return [slot(part) for part in each] if isinstance(each, (tuple, list)) else each

    return [slot(argument) for argument in arguments], values


def slots_filled(slots: Sequence[Any], values: Iterator[Any], **others: Any) -> list[Any]:
    """The arguments with values in the SLOTs; `plain=` stands for every other argument, where it is given."""

    def fill(each: Any) -> Any:
        if each is SLOT:
            return next(values)
        return [fill(part) for part in each] if isinstance(each, list) else others.get("plain", each)

    return [fill(slot) for slot in slots]
