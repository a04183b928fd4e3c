"""Data that was replaced through `.data`, which autograd does not see.

PyTorch's gradients read the tensors they saved when they run: `w.data.mul_(2)` or `w.data = new`, between
forward and backward, changes the gradients of the ops that saved `w`. Such values are noted here, and the
backward sweep asks for their present data. A write to the memory reaches saved views and results as well;
other memory reaches the ops that saved the tensor itself.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

from tenfold.base.errors import ShapeError
from tenfold.ops.callee import OpCall
from tenfold.ops.table import find
from tenfold.trace.graph import Holder, Node, Value, call_op, enter


class Replaced(NamedTuple):
    """Who holds the present data of a value: a storage that was written to, or a tensor that got other memory
    (`rebound`)."""

    holder: Holder
    rebound: bool


# What has an attribute `replaced`. That holds the new data, which may be computed from the old.
_values: weakref.WeakSet[Value] = weakref.WeakSet()
_nodes: weakref.WeakSet[Node] = weakref.WeakSet()


def note_write(value: Value, storage: Holder) -> None:
    """Note that the memory which held `value` was written to."""
    replaced = Replaced(storage, rebound=False)
    if value not in _values:  # else its tensor looks elsewhere by now, and does not see the write
        value.replaced = replaced
        _values.add(value)
    if value.origin is not None and isinstance(value.origin.node, Node):
        node = value.origin.node
        if node not in _nodes:
            node.replaced = {}
            _nodes.add(node)
        node.replaced[value.origin.index] = replaced


def note_rebinding(value: Value, tensor: Holder) -> None:
    """Note that the tensor which held `value` looks at other memory now."""
    value.replaced = Replaced(tensor, rebound=True)
    _values.add(value)


def is_replaced(value: Value) -> bool:
    """Whether a value, or the memory that it is a view of, has other data now."""
    while value not in _values:
        view = _view_of(value)
        if view is None:
            return False
        value = view.inputs[0]
        if value in _values and value.replaced.rebound:
            return False  # a view stays with the memory it was made of
    return True


def is_touched(node: Node) -> bool:
    """Whether the gradient of a node may have saved what was replaced."""
    return bool(_values or _nodes) and (
        node in _nodes or any(is_replaced(operand) for operand in node.inputs)
    )


def present_inputs(node: Node, saved: list[int], inputs: list[Value]) -> None:
    """Put the present data of the inputs that a node's gradient saved in their places in `inputs`."""
    as_views = node.callee.row.saves_views if isinstance(node.callee, OpCall) else ()
    for i in saved:
        value = node.inputs[i]
        viewed = i in as_views and value in _values and value.replaced.rebound
        if is_replaced(value) and not viewed:
            inputs[i] = _fitted(_present(value), value, node)


def present_results(node: Node, saved: list[int], results: dict[int, Value]) -> None:
    """The same for the results that it saved, by place."""
    if node in _nodes:
        results.update({i: entry.holder.current() for i, entry in node.replaced.items() if i in saved})


def _present(value: Value) -> Value:
    """The data that a replaced value has now. Views are taken again."""
    if value in _values:
        return value.replaced.holder.current()
    view = _view_of(value)
    assert view is not None
    again = Node(view.callee, (_present(view.inputs[0]), *view.inputs[1:]), view.source)
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
