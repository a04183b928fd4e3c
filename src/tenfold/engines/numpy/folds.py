"""Kernels that fold many elements into one: reductions, and reductions of sliding windows.

A fold by an arbitrary body joins neighbours, so that it takes as many steps as the logarithm of what is
folded: StableHLO leaves the order of a fold open, and asks that the body be associative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.engines.numpy.bodies import Body, accumulating, combiner, ufunc
from tenfold.engines.numpy.kernels import Array, Kernel
from tenfold.engines.numpy.movement import padded
from tenfold.flat.windows import dilated

Arrays = tuple[Array, ...]


def reduce(op: Any) -> Kernel:
    axes, count = op.dimensions, len(op.inputs)
    found = ufunc(op.body)
    if found is not None:
        return _by_ufunc(found, op)
    body = combiner(op.body)
    kept = [d for d in range(op.inputs[0].rank) if d not in axes]
    shape = op.results[0].shape

    def kernel(*operands: Array) -> Any:
        inputs, inits = operands[:count], operands[count:]
        folded = tuple([operand.transpose([*kept, *axes]).reshape((*shape, -1)) for operand in inputs])
        if inputs[0].size == 0:
            results = tuple([np.broadcast_to(init, shape) for init in inits])
        else:
            last = tuple([each[..., 0] for each in _fold_last(folded, body)])
            results = tuple([np.broadcast_to(each, shape) for each in body(*inits, *last)])
        return results if count > 1 else results[0]

    return kernel


def _by_ufunc(found: np.ufunc, op: Any) -> Kernel:
    axes, dtype = op.dimensions, op.inputs[0].dtype
    wide, narrow = accumulating(dtype), dtype.numpy
    if wide != narrow:
        return lambda x, init: np.asarray(
            found.reduce(x.astype(wide), axis=axes, initial=init.astype(wide)[()])
        ).astype(narrow)
    if dtype.kind == "int" or dtype.kind == "bool":
        return lambda x, init: found.reduce(x, axis=axes, dtype=narrow, initial=init[()])
    return lambda x, init: found.reduce(x, axis=axes, initial=init[()])


def _fold_last(arrays: Arrays, body: Body) -> Arrays:
    """Fold the last dimension, which is not empty, to one element: neighbours in pairs, again and again."""
    while (extent := arrays[0].shape[-1]) > 1:
        even = extent // 2 * 2
        joined = body(
            *[array[..., 0:even:2] for array in arrays], *[array[..., 1:even:2] for array in arrays]
        )
        if even < extent:
            joined = tuple(
                [np.concatenate([x, array[..., even:]], -1) for x, array in zip(joined, arrays, strict=True)]
            )
        arrays = joined
    return arrays


def reduce_window(op: Any) -> Kernel:
    """Each dimension is folded by itself, the last one first."""
    count, rank = len(op.inputs), op.inputs[0].rank
    wide = [accumulating(operand.dtype) for operand in op.inputs]
    narrow = [operand.dtype.numpy for operand in op.inputs]
    spread = _spread(op)
    found = ufunc(op.body)
    body = combiner(op.body)

    def kernel(*operands: Array) -> Any:
        inputs, inits = operands[:count], operands[count:]
        arrays: Arrays = tuple([pad(x, init) for pad, x, init in zip(spread, inputs, inits, strict=True)])
        if found is not None:
            arrays = tuple(
                [array.astype(dtype, copy=False) for array, dtype in zip(arrays, wide, strict=True)]
            )
        for axis in reversed(range(rank)):
            settings = op.window_dimensions[axis], op.window_strides[axis], op.window_dilations[axis]
            if settings != (1, 1, 1):
                arrays = _fold_windows(arrays, body, found, axis, *settings)
        # What fills the padding is the initial value; a fold begins with it in any case.
        starts = [init.astype(array.dtype) for init, array in zip(inits, arrays, strict=True)]
        arrays = body(*starts, *arrays)
        results = tuple(
            [array.astype(dtype, copy=False) for array, dtype in zip(arrays, narrow, strict=True)]
        )
        return results if count > 1 else results[0]

    return kernel


def _spread(op: Any) -> list[Kernel]:
    """For each input what spreads and pads it."""
    extents = op.inputs[0].shape
    interior = tuple([base_dilation - 1 for base_dilation in op.base_dilations])
    low = tuple([pair[0] for pair in op.padding])
    shape = tuple(
        [
            dilated(extent, dilation) + sum(pair)
            for extent, dilation, pair in zip(extents, op.base_dilations, op.padding, strict=True)
        ]
    )
    if shape == extents and not any(interior) and not any(low):
        return [lambda x, init: x] * len(op.inputs)
    return [padded(extents, shape, low, interior, operand.dtype.numpy) for operand in op.inputs]


def _fold_windows(
    arrays: Arrays, body: Body, found: np.ufunc | None, axis: int, window: int, stride: int, dilation: int
) -> Arrays:
    extent = arrays[0].shape[axis]
    reach = (window - 1) * dilation + 1
    count = max((extent - reach) // stride + 1, 0) if extent else 0
    if not count:
        return tuple([_part(array, axis, 0, 0, 1) for array in arrays])
    if window <= FEW or stride > 1:
        result = tuple([_taken(array, axis, 0, count, stride) for array in arrays])
        for tap in range(1, window):
            start = tap * dilation
            result = body(*result, *[_taken(array, axis, start, count, stride) for array in arrays])
        return result
    return _doubled(arrays, body, axis, window, dilation, count)


FEW = 8


def _doubled(arrays: Arrays, body: Body, axis: int, window: int, dilation: int, count: int) -> Arrays:
    """Long windows with stride 1: those of 1, 2, 4, ... elements are made of one another, and the window of
    those that its length has as bits."""
    result: Arrays | None = None
    start, size = 0, 1
    while True:
        if window & size:
            part = tuple([_taken(array, axis, start, count, 1) for array in arrays])
            result = part if result is None else body(*result, *part)
            start += size * dilation
        size *= 2
        if size > window:
            assert result is not None
            return result
        length, step = arrays[0].shape[axis], size // 2 * dilation
        arrays = body(
            *[_part(array, axis, 0, length - step, 1) for array in arrays],
            *[_part(array, axis, step, length, 1) for array in arrays],
        )


def _taken(array: Array, axis: int, start: int, count: int, stride: int) -> Array:
    return _part(array, axis, start, start + (count - 1) * stride + 1, stride)


def _part(array: Array, axis: int, start: int, stop: int, stride: int) -> Array:
    parts: list[Any] = [slice(None)] * array.ndim
    parts[axis] = slice(start, stop, stride)
    return array[tuple(parts)]


def windows_of(
    array: Array,
    axes: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Array:
    """A view of the array in which each of `axes` counts windows, and whose last dimensions lie in them."""
    shape, steps = list(array.shape), list(array.strides)
    inside, inner_steps = [], []
    for axis, window, stride, dilation in zip(axes, windows, strides, dilations, strict=True):
        reach = (window - 1) * dilation + 1
        shape[axis] = max((array.shape[axis] - reach) // stride + 1, 0) if array.shape[axis] else 0
        inside.append(window)
        inner_steps.append(steps[axis] * dilation)
        steps[axis] *= stride
    return np.lib.stride_tricks.as_strided(array, (*shape, *inside), (*steps, *inner_steps), writeable=False)
