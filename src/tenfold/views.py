"""Memory that tensors share: PyTorch's views and in-place writes on a Trace that is pure.

Tensors that alias each other share a `Storage`, whose value is replaced by each write. A view remembers the ops that
lead to it from there: it is read by replaying them when the storage has changed, and written by putting the new value
back through them. Strides and offset tell what PyTorch would: whether a reshape can share, whether elements overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold.errors import ShapeError
from tenfold.flat.strides import contiguous, view_strides
from tenfold.ops.table import Row, find
from tenfold.trace.graph import Holder, Value, record


class Storage(Holder):
    """The memory behind tensors that alias: its present value, and how often it was written."""

    __slots__ = ("value", "version", "__weakref__")

    def __init__(self, value: Value):
        self.value = value
        self.version = 0

    def current(self) -> Value:
        return self.value

    def replace(self, value: Value) -> None:
        self.value = value
        self.version += 1


class Step(NamedTuple):
    """One view op on the way from the storage to a view; `arguments` are the schema's, after `self`."""

    row: Row
    arguments: tuple[Any, ...]
    index: int


class Alias:
    """How a tensor lies in its storage."""

    __slots__ = ("storage", "steps", "version", "strides", "offset")

    def __init__(self, storage: Storage, steps: tuple[Step, ...], strides: tuple[int, ...], offset: int):
        self.storage = storage
        self.steps = steps
        self.version = storage.version
        self.strides = strides
        self.offset = offset


def whole(value: Value) -> Alias:
    """A storage of its own for a value, and the alias that is all of it."""
    return Alias(Storage(value), (), contiguous(value.type.shape), 0)


def extend(alias: Alias, row: Row, arguments: Sequence[Any], result: Value) -> Alias | None:
    """The alias of a view op's result; None if PyTorch would copy."""
    assert result.node is not None
    fragment = result.node.signature.fragment
    if row.strides is not None:
        layout = row.strides(fragment, (alias.strides, alias.offset), *arguments)
    else:
        layout = view_strides(fragment, (alias.strides, alias.offset), result.index)
    if layout is None:
        return None
    step = Step(row, tuple(arguments), result.index)
    return Alias(alias.storage, (*alias.steps, step), *layout)


def read(alias: Alias, where: Any) -> Value:
    """What the view sees in its storage now."""
    value = alias.storage.value
    for step in alias.steps:
        value = record(step.row, (value, *step.arguments), where)[step.index]
    return value


def write(alias: Alias, new: Value, where: Any) -> None:
    """Put a view's new value back into its storage."""

    def call(name: str, *arguments: Any) -> Value:
        return record(find(name), arguments, where)[0]

    storage = alias.storage
    if all(step.row.write for step in alias.steps):
        before = [storage.value]
        for step in alias.steps[:-1]:
            before.append(record(step.row, (before[-1], *step.arguments), where)[step.index])
        for step, base in zip(reversed(alias.steps), reversed(before), strict=False):
            assert step.row.write is not None
            new = step.row.write(call, base, new, *step.arguments)
        storage.replace(new)
    else:
        base = storage.value
        size, strides, offset = new.type.shape, alias.strides, alias.offset
        storage.replace(call("as_strided_scatter", base, new, size, strides, offset))
    alias.version = storage.version


def check_no_overlap(shape: Sequence[int], alias: Alias) -> None:
    """Refuse a write to an expanded tensor, as PyTorch does."""
    if any(extent > 1 and stride == 0 for extent, stride in zip(shape, alias.strides, strict=True)):
        raise ShapeError(
            "cannot write in place: several elements of the tensor share one memory location (it was expanded)",
            help="clone() it first",
        )


Call = Callable[..., Value]
