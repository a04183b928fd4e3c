"""Which FlatIR programs only look at memory in another way, and how: one stride rule for each op that can.

`view_strides` follows a function from its first parameter to a result. It gives the result's strides and offset in
the memory of that parameter, or None where the data would have to be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.flat import movement as m
from tenfold.flat.graph import Function, Value

Strides = tuple[int, ...]
Layout = tuple[Strides, int]


def contiguous(shape: Sequence[int]) -> Strides:
    """Row-major strides, counted in elements."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def view_strides(function: Function, layout: Layout, index: int = 0) -> Layout | None:
    layouts: dict[Value, Layout | None] = {function.params[0]: layout}
    for op in function.ops:
        rule = STRIDES.get(type(op))
        known = layouts.get(op.operands[0]) if op.operands else None
        found = rule(op, *known) if rule and known else None
        for result in op.results:
            layouts[result] = found
    return layouts.get(function.results[index])


def _slice(op: m.Slice, strides: Strides, offset: int) -> Layout:
    start = sum(s * first for s, first in zip(strides, op.start_indices, strict=True))
    return tuple([s * step for s, step in zip(strides, op.strides, strict=True)]), offset + start


def _broadcast(op: m.BroadcastInDim, strides: Strides, offset: int) -> Layout:
    result = [0] * len(op.shape)
    for axis, place in enumerate(op.broadcast_dimensions):
        if op.x.shape[axis] == op.shape[place]:
            result[place] = strides[axis]
    return tuple(result), offset


def reshaped(shape: Strides, strides: Strides, target: Strides) -> Strides | None:
    """The strides with which `target` walks the same elements in the same order, or None if there are none."""
    if 0 in shape:
        return contiguous(target)
    # Runs of dimensions that lie in memory as one: (number of elements, stride of the innermost).
    runs: list[list[int]] = []
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if runs and runs[-1][1] == stride * extent:
            runs[-1] = [runs[-1][0] * extent, stride]
        else:
            runs.append([extent, stride])
    result: list[int] = []
    left, stride = 1, 1
    for extent in reversed(target):
        if extent == 1:
            result.append(stride if left != 1 or not result else result[-1])
            continue
        if left == 1:
            left, stride = runs.pop()
        if left % extent:
            return None
        result.append(stride)
        left, stride = left // extent, stride * extent
    return tuple(reversed(result))


def _reshape(op: m.Reshape, strides: Strides, offset: int) -> Layout | None:
    found = reshaped(op.x.shape, strides, op.shape)
    return None if found is None else (found, offset)


STRIDES: dict[type, Callable[..., Any]] = {
    m.Transpose: lambda op, strides, offset: (tuple([strides[p] for p in op.permutation]), offset),
    m.Slice: _slice,
    m.BroadcastInDim: _broadcast,
    m.Reshape: _reshape,
}
