"""Data that was replaced through `.data`, which autograd does not see.

PyTorch's gradients read the tensors they saved when they run: `w.data.mul_(2)` or `w.data = new`, between
forward and backward, changes the gradients of the ops that saved `w`. Such values are noted here, and the
backward sweep asks for their present data. A write to the memory reaches saved views and results as well;
other memory reaches the ops that saved the tensor itself. Writes that autograd is told of are refused, as
elsewhere: a tensor that shares memory by `.data` has a version counter of its own.

Results that a gradient saved are those of the forward pass. A gradient that needs something in between,
computed from data that was replaced, is refused unless the row says that PyTorch computes it again.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection
from typing import Any

from tenfold.base.errors import GradientError, ShapeError, TenfoldError
from tenfold.ops.callee import OpCall
from tenfold.ops.table import find
from tenfold.trace.graph import Holder, Node, Value, call_op, enter


class Counter:
    """How many writes autograd was told of, to a tensor, its views and what was detached from it: PyTorch's
    version counter."""

    __slots__ = ("writes",)

    def __init__(self) -> None:
        self.writes = 0


class Replaced:
    """Where the present data of a value is: in the `memory` that held it, if that was written `since`; or in
    the `tensor` that held it, if that refers to other memory now (`rebound`)."""

    __slots__ = ("counted", "counter", "memory", "rebound", "since", "tensor", "writer")

    def __init__(self) -> None:
        self.memory: Any = None  # a Storage, or what reads one
        self.since = 0  # the version of the storage when it held the value
        self.tensor: Holder | None = None
        self.rebound = False
        self.counter: Counter | None = None  # of the tensor
        self.counted = 0
        self.writer: weakref.ref[Node] | None = None  # the node that wrote over the value

    def lies_in(self, memory: Any, version: int) -> None:
        self.memory, self.since = memory, version

    def counts(self, counter: Counter) -> None:
        """Note how far the tensor's counter is, if that is not known from before."""
        if self.counter is not counter:
            self.counter, self.counted = counter, counter.writes

    @property
    def in_memory(self) -> bool:
        """Whether the memory was written, which views see as well."""
        return self.memory is not None and self.memory.version != self.since

    @property
    def is_told(self) -> bool:
        """Whether autograd was told of a write, so that no gradient may need the value."""
        return self.counter is not None and self.counter.writes != self.counted

    def current(self) -> Value:
        return self.memory.current() if self.tensor is None else self.tensor.current()


# What has an attribute `replaced`. That holds the new data, which may be computed from the old.
_values: weakref.WeakSet[Value] = weakref.WeakSet()
_nodes: weakref.WeakSet[Node] = weakref.WeakSet()


def _entry(value: Value) -> Replaced:
    if value not in _values:
        value.replaced = Replaced()
        _values.add(value)
    return value.replaced


def note_write(value: Value, storage: Any) -> None:
    """Note that the memory which held `value` is written to, without telling autograd."""
    entry = _entry(value)
    if entry.memory is None:
        entry.lies_in(storage, storage.version)
    if value.origin is not None and isinstance(value.origin.node, Node):
        node = value.origin.node
        if node not in _nodes:
            node.replaced = {}
            _nodes.add(node)
        node.replaced[value.origin.index] = storage


def note_place(value: Value, place: Any, counter: Counter) -> None:
    """Note where a value lies that others may write to without telling autograd."""
    entry = _entry(value)
    entry.lies_in(place, place.version)
    entry.counts(counter)


def note_reading(value: Value, tensor: Holder, counter: Counter) -> None:
    """Note that the tensor which held `value` reads its memory again."""
    if value in _values:
        value.replaced.tensor = tensor
        value.replaced.counts(counter)


def note_rebinding(value: Value, tensor: Holder, counter: Counter) -> None:
    """Note that the tensor which held `value` looks at other memory now."""
    entry = _entry(value)
    entry.tensor, entry.rebound = tensor, True
    entry.counts(counter)


def note_own_write(value: Value, by: Value) -> None:
    """Note which op's result was written over a value. The op itself had it before."""
    if value in _values and by.node is not None:
        value.replaced.writer = weakref.ref(by.node)


def is_told(value: Value, node: Node | None = None) -> bool:
    """Whether autograd knows that another node than this one wrote over a value."""
    if value not in _values or not value.replaced.is_told:
        return False
    return node is None or value.replaced.writer is None or value.replaced.writer() is not node


def is_replaced(value: Value) -> bool:
    """Whether a value, or the memory that it is a view of, now has other data that autograd does not know
    of."""
    entry = value.replaced if value in _values else None
    if entry is not None and (entry.rebound or entry.in_memory):
        return not entry.is_told
    while entry is None:
        view = _view_of(value)
        if view is None:
            return False
        value = view.inputs[0]
        entry = value.replaced if value in _values else None
    return entry.in_memory and not entry.is_told  # a view stays with the memory it was made of


def is_anything_touched() -> bool:
    """Whether there is a node whose gradient may have saved what was replaced, or written over."""
    return bool(_values or _nodes)


def is_touched(node: Node) -> bool:
    """Whether the gradient of a node may have saved what was replaced, or written over."""
    return is_anything_touched() and (
        node in _nodes or any(is_replaced(operand) or is_told(operand, node) for operand in node.inputs)
    )


def present_inputs(node: Node, saved: Collection[int], derived: Collection[int], inputs: list[Value]) -> None:
    """Replace in `inputs` what a node's gradient saved by its present data. Inputs are refused if the
    gradient needs values `derived` from them in the forward pass: PyTorch saves some of those, and computes
    others again."""
    row = node.callee.row if isinstance(node.callee, OpCall) else None
    as_views = () if row is None else row.saves_views
    unknown = () if row is not None and row.saves == "inputs" else derived
    if row is not None and row.saves == "other":
        saved = unknown = range(len(inputs))
    for i in saved:
        value = node.inputs[i]
        viewed = i in as_views and value in _values
        if not is_replaced(value) or (viewed and not value.replaced.in_memory):
            continue
        if i in unknown:
            raise _no_longer_known(value, node)
        inputs[i] = _fitted(_in_memory(value) if viewed else _present(value), value, node)


def present_results(node: Node, saved: list[int], results: dict[int, Value]) -> None:
    """The same for the results that it saved, by place."""
    if node in _nodes:
        results.update({i: memory.current() for i, memory in node.replaced.items() if i in saved})


def _no_longer_known(value: Value, node: Node) -> TenfoldError:
    return GradientError(
        f"the gradient needs what forward computed from {value.type}, whose data was replaced through .data",
        help="write to .data after backward, or clone() the tensor before the op",
    ).located(node.callee.name, node.source)


def _present(value: Value) -> Value:
    """The data that a replaced value has now."""
    return value.replaced.current() if value in _values else _in_memory(value)


def _in_memory(value: Value) -> Value:
    """The data that is now where a value was. Views are taken again."""
    if value in _values:
        return value.replaced.memory.current()
    view = _view_of(value)
    assert view is not None
    again = Node(view.callee, (_in_memory(view.inputs[0]), *view.inputs[1:]), view.source)
    return enter(again, value.device)[value.index if value.origin is None else value.origin.index]


def _view_of(value: Value) -> Node | None:
    """The view op that a value is a result of, if it is."""
    node = value.node if value.origin is None else value.origin.node
    if not isinstance(node, Node) or not isinstance(node.callee, OpCall):
        return None
    return node if node.callee.row.schema.is_view and node.inputs else None


def _fitted(value: Value, before: Value, node: Node) -> Value:
    """The present data in the type that the op was recorded for."""
    if value.type.shape != before.type.shape:
        raise ShapeError(
            f"the gradient needs {before.type}, whose data was replaced by {value.type}",
            help="assign .data after backward, or keep its shape",
        ).located(node.callee.name, node.source)
    if value.type.dtype is before.type.dtype:
        return value
    return call_op(find("_to_copy"), (value, before.type.dtype, None, None, None, False, None), node.source)[
        0
    ]
