"""Kernels that put elements in order: sort by any comparator, and the k largest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold.engines.numpy.arithmetic import total_order
from tenfold.engines.numpy.bodies import Body, vectorised
from tenfold.engines.numpy.kernels import Array, Kernel
from tenfold.flat import elementwise as e
from tenfold.flat.ir import Function


def sort(op: Any) -> Kernel:
    axis, count = op.dimension, len(op.inputs)
    key = _simple_key(op.comparator)
    floats = key is not None and op.inputs[key.place].type.dtype.is_floating_point
    before = vectorised(op.comparator)

    def kernel(*arrays: Array) -> Any:
        moved = [np.moveaxis(array, axis, -1) for array in arrays]
        if moved[0].shape[-1] < 2 or not moved[0].size:
            return arrays if count > 1 else arrays[0]
        if key is not None and (key.total or not np.isnan(moved[key.place]).any()):
            place, descending, total = key
            order = ascending(moved[place], descending, total and floats)
            results = [np.take_along_axis(each, order, -1) for each in moved]
        else:
            results = merged(moved, before)
        backed = tuple([np.moveaxis(result, -1, axis) for result in results])
        return backed if count > 1 else backed[0]

    return kernel


class Key(NamedTuple):
    """A comparator that is one comparison: of which input, whether downwards, whether in total order. In any
    other order NaN is neither before nor after: what comes of it is the comparator's business."""

    place: int
    descending: bool
    total: bool


def _simple_key(comparator: Function) -> Key | None:
    op = comparator.results[0].op
    if not isinstance(op, e.Compare) or op.direction not in ("LT", "GT") or len(comparator.ops) != 1:
        return None
    places = [
        comparator.params.index(operand) if operand in comparator.params else -1 for operand in op.operands
    ]
    if places[0] // 2 != places[1] // 2 or places[0] == places[1] or min(places) < 0:
        return None
    if op.x.dtype.is_complex:
        return None
    descending = (op.direction == "GT") != (places[0] > places[1])
    return Key(places[0] // 2, descending, op.total_order or not op.x.dtype.is_floating_point)


def ascending(x: Array, descending: bool, total: bool) -> Array:
    """The places of the elements along the last dimension in their order, equal ones as they came."""
    if total:
        x = total_order(x)
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    # Backwards, and back again: so equal elements stay in order.
    return x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]


def merged(arrays: list[Array], before: Body) -> list[Array]:
    """A stable merge sort along the last dimension that compares all elements at once.

    In each round runs of `width` are merged in pairs: an element's place is its own in its run, and as many
    further as elements of the other run go before it, which a binary search finds.
    """
    extent = arrays[0].shape[-1]
    width = 1
    places = np.arange(extent)
    while width < extent:
        run = places // width
        left = run % 2 == 0
        start = np.where(left, run + 1, run - 1) * width  # of the other run
        stop = np.minimum(start + width, extent)
        start = np.minimum(start, extent)
        low = np.broadcast_to(start, arrays[0].shape).copy()
        high = np.broadcast_to(stop, arrays[0].shape).copy()
        while (open_ := low < high).any():
            middle = (low + high) // 2
            others = [np.take_along_axis(array, np.minimum(middle, extent - 1), -1) for array in arrays]
            other_first = before(*[side for pair in zip(others, arrays, strict=True) for side in pair])[0]
            self_first = before(*[side for pair in zip(arrays, others, strict=True) for side in pair])[0]
            # Of equal elements, those of the left run come first.
            goes = np.where(left, other_first, ~self_first)
            low = np.where(open_ & goes, middle + 1, low)
            high = np.where(open_ & ~goes, middle, high)
        pair = run // 2 * 2 * width
        target = pair + (places - run * width) + (low - start)
        results = [np.empty_like(array, order="C") for array in arrays]
        for result, array in zip(results, arrays, strict=True):
            np.put_along_axis(result, target, array, -1)
        arrays = results
        width *= 2
    return arrays


def top_k(op: Any) -> Kernel:
    """The k largest and their places, in total order: NaN is larger than all."""
    k, floats = op.k, op.x.dtype.is_floating_point

    def kernel(x: Array) -> tuple[Array, Array]:
        order = ascending(x, True, floats)[..., :k]
        return np.take_along_axis(x, order, -1), order.astype(np.int32)

    return kernel
