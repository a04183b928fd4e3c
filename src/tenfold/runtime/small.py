"""Small programs, run op by op on tier 0.

To find an executable and to call it costs as much as some kernels of NumPy's. What takes no longer than that
is not collected, looked up or compiled: its ops run one after the other, each by a plan that its callee
keeps. Gradients, and ops that check data or call libraries, go the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base import owners
from tenfold.base.errors import UnsupportedError
from tenfold.engines.numpy.plan import Plan, direct, plan
from tenfold.flat.composite import Composite
from tenfold.flat.ir import Op
from tenfold.flat.structured import Case, Check, CustomCall, While
from tenfold.ops.callee import Callee
from tenfold.runtime import tiers
from tenfold.trace.graph import Node, Value

MOST = 16  # nodes of a small program
LONG_WAY = (Case, Check, CustomCall, While)


class Small(NamedTuple):
    """How a callee runs on tier 0, and the seconds that it takes, estimated: by one `kernel` that gives its
    only result, or by a `plan`."""

    kernel: Callable[..., Any] | None
    plan: Plan | None
    seconds: float

    def __call__(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The results of the callee."""
        if self.kernel is not None:
            return [self.kernel(*arrays)]
        assert self.plan is not None
        return self.plan(arrays)


ran = 0  # small programs so far


def run(values: Sequence[Value], host_array: Callable[[Value], np.ndarray]) -> bool:
    """Compute these values, and all that they depend on, if it is a small program; else do nothing."""
    global ran
    if len(values) == 1 and _run_one(values[0]):
        ran += 1
        return True
    order: dict[Node, Value] = {}
    for value in values:
        if value.buffer is None and not _ordered(value, order):
            return False
    seconds = 0.0
    for node in order:
        seconds += node.callee.small.seconds
    if seconds > tiers.SMALL:
        return False
    found: dict[Node, list[np.ndarray]] = {}
    with np.errstate(all="ignore"):
        for node, value in order.items():
            arrays = []
            for each in node.inputs:
                if each.buffer is None:
                    arrays.append(found[each.node][each.index])  # type: ignore[index]
                else:
                    arrays.append(each.buffer if type(each.buffer) is np.ndarray else host_array(each))
            found[node] = results = node.callee.small(arrays)
            arrays.clear()
            _settle(node, value, results)
    ran += 1
    return True


def _run_one(value: Value) -> bool:
    """Compute a value by one op on data that is there, as a number that is read in a loop mostly is; do
    nothing if it needs more than that."""
    node, device = value.node, value.device
    way = None if node is None else node.callee.small
    if node is None or not way or node.path or node.results:
        return False
    if device.type != "cpu" or device.mesh is not None:
        return False
    arrays = []
    for operand in node.inputs:
        if type(operand.buffer) is not np.ndarray or operand.device is not device:
            return False
        arrays.append(operand.buffer)
    with np.errstate(all="ignore"):
        results = way(arrays)
    arrays.clear()
    _settle(node, value, results)
    return True


def _ordered(value: Value, order: dict[Node, Value]) -> bool:
    """Add the node of a value, after those that it depends on; False if the program is not small."""
    node, device = value.node, value.device
    if node is None or node.path or node.depth > MOST or len(order) >= MOST:
        return False
    if device.type != "cpu" or device.mesh is not None:
        return False
    callee = node.callee
    if callee.small is None:
        callee.small = _small(callee)
    if callee.small is False:
        return False
    for each in node.inputs:
        if each.buffer is None:
            if each.node not in order and not _ordered(each, order):
                return False
        elif each.device is not device:
            return False
    order[node] = value
    return True


def _settle(node: Node, value: Value, results: list[np.ndarray]) -> None:
    """Give the values of a node their data, each in memory of its own."""
    for i in range(len(results)):
        result = results[i]
        # An operand or a constant has more owners than the list.
        if (
            owners.count(result) > owners.NAMED + 1
            or result.base is not None
            or not result.flags.c_contiguous
        ):
            results[i] = np.array(result, order="C")
    if not node.results:
        value.settle(results[0])
        return
    for reference in node.results:
        held = reference()
        if held is not None and held.buffer is None:
            held.settle(results[held.index])


def _small(callee: Callee) -> Small | bool:
    """How a callee runs on tier 0; False if it is nothing for this way."""
    fragment = callee.fragment
    ops = fragment.ops
    seconds = tiers.total(ops).seconds
    if seconds > tiers.SMALL or not _plain(ops):
        return False
    try:
        kernel = direct(fragment)
        return Small(kernel, None if kernel else plan(fragment), seconds)
    except UnsupportedError:
        return False


def _plain(ops: Iterable[Op]) -> bool:
    for op in ops:
        if isinstance(op, LONG_WAY) or (type(op) is Composite and not _plain(op.body.ops)):
            return False
    return True
