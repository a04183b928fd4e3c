"""Kernels of sums of products: dot_general and convolution, as matrix products of BLAS where it has them.

Floats narrower than float32 are multiplied in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.engines.numpy.folds import windows_of
from tenfold.engines.numpy.kernels import Array, Kernel, working
from tenfold.engines.numpy.movement import padded
from tenfold.flat.windows import dilated

# Elements of a second factor that is laid out by rows first. BLAS starts threads for a small product with a
# transposed one, which takes longer than the product, and much longer on a busy machine.
SMALL = 1 << 16


def dot_general(op: Any) -> Kernel:
    numbers, x, y = op.dot_dimension_numbers, op.x, op.y
    batch_x, batch_y, sum_x, sum_y = numbers
    free_x = [d for d in range(x.rank) if d not in batch_x and d not in sum_x]
    free_y = [d for d in range(y.rank) if d not in batch_y and d not in sum_y]
    order_x, order_y = [*batch_x, *free_x, *sum_x], [*batch_y, *sum_y, *free_y]
    batch = math.prod([x.shape[d] for d in batch_x])
    inner = math.prod([x.shape[d] for d in sum_x])
    rows, columns = (math.prod([v.shape[d] for d in free]) for v, free in ((x, free_x), (y, free_y)))
    shape, dtype = op.result.shape, op.dtype.numpy
    wide = working(op.dtype) if working(x.dtype) == working(op.dtype) else _wider(x.dtype, op.dtype)
    plain = wide == x.dtype.numpy == dtype
    if plain and not batch_x and len(sum_x) == 1 and x.rank == y.rank == 2 and wide.kind in "fc":
        # `dot` starts in a third of the time that `matmul` takes.
        turn_x, turn_y = sum_x[0] == 0, sum_y[0] == 1
        copies = turn_y and min(rows, columns, inner) > 1 and y.numel <= SMALL

        def product(x: Array, y: Array) -> Array:
            left, right = x.T if turn_x else x, y.T if turn_y else y
            result: Array = left.dot(np.ascontiguousarray(right) if copies else right)
            return result

        return product

    def kernel(x: Array, y: Array) -> Array:
        left = x.astype(wide, copy=False).transpose(order_x).reshape(batch, rows, inner)
        right = y.astype(wide, copy=False).transpose(order_y).reshape(batch, inner, columns)
        if batch > 1 or right.size <= SMALL:
            right = np.ascontiguousarray(right)
        return np.matmul(left, right).astype(dtype, copy=False).reshape(shape)

    return kernel


def _wider(operands: Any, result: Any) -> np.dtype[Any]:
    """The dtype to multiply in where operands and result differ: it holds both."""
    return np.promote_types(working(operands), working(result))


LARGE = 1 << 24  # elements of windows that are laid out at once


def convolution(op: Any) -> Kernel:
    """Lays the windows of the input out as rows of a matrix, and the kernel as its other factor."""
    numbers, dtype = op.dimension_numbers, op.x.dtype
    wide, spatial = working(dtype), len(op.window_strides)
    groups, batches = op.feature_group_count, op.batch_group_count
    into_rows = _image(op, wide)
    order = (numbers.kernel_output_feature_dimension, *numbers.kernel_spatial_dimensions)
    order = (*order, numbers.kernel_input_feature_dimension)
    flips = tuple([slice(None, None, -1 if each else None) for each in op.window_reversal])
    windows = tuple([op.kernel.shape[d] for d in numbers.kernel_spatial_dimensions])
    counts = tuple([op.result.shape[d] for d in numbers.output_spatial_dimensions])
    axes = [1 + i for i in range(spatial)]
    back = np.argsort(
        [numbers.output_batch_dimension, *numbers.output_spatial_dimensions, numbers.output_feature_dimension]
    )
    folded = groups * batches
    if not op.result.numel or not op.x.numel or not op.kernel.numel:
        return lambda x, weights: np.zeros(op.result.shape, dtype.numpy)

    def kernel(x: Array, weights: Array) -> Array:
        image = into_rows(x)  # batch, spatial..., group, channel
        weights = weights.astype(wide, copy=False).transpose(order)[(slice(None), *flips)]
        view = windows_of(image, axes, windows, op.window_strides, op.rhs_dilation)
        # batch, spatial..., group, channel, window...: the window before the channel, as the kernel has it.
        view = np.moveaxis(view, 2 + spatial, -1)
        result = _grouped(view, weights, counts, folded)
        return result.transpose(back).astype(dtype.numpy, copy=False)

    return kernel


def _image(op: Any, wide: np.dtype[Any]) -> Kernel:
    """The input, padded and spread: batch, spatial dimensions, groups, the channels of one."""
    numbers, batches = op.dimension_numbers, op.batch_group_count
    order = (
        numbers.input_batch_dimension,
        *numbers.input_spatial_dimensions,
        numbers.input_feature_dimension,
    )
    extents = tuple([op.x.shape[d] for d in order])
    low = (0, *[pair[0] for pair in op.padding], 0)
    interior = (0, *[each - 1 for each in op.lhs_dilation], 0)
    lengths = [
        dilated(extent, dilation) + sum(pair)
        for extent, dilation, pair in zip(extents[1:-1], op.lhs_dilation, op.padding, strict=True)
    ]
    shape = (extents[0], *lengths, extents[-1])
    pad = padded(extents, shape, low, interior, wide) if shape != extents else None
    zero = np.zeros((), wide)

    def kernel(x: Array) -> Array:
        image = x.transpose(order).astype(wide, copy=False)
        if pad is not None:
            image = pad(image, zero)
        if batches > 1:  # a group of the batch is seen as a group of channels
            image = image.reshape(batches, -1, *image.shape[1:])
            return np.moveaxis(image, 0, -2)
        return image.reshape(*image.shape[:-1], op.feature_group_count, -1)

    return kernel


def _grouped(view: Array, weights: Array, counts: tuple[int, ...], groups: int) -> Array:
    """The sums over windows and channels: batch, spatial dimensions, output channels."""
    taps = weights.shape[1:]
    outputs = weights.shape[0] // groups
    inner = math.prod(taps)
    batch, rows = view.shape[0], math.prod(counts)
    if taps[-1] == 1 and groups > 1 and outputs <= 2:
        return _depthwise(view[..., 0], weights[..., 0], groups)
    factors = weights.reshape(groups, outputs, inner).transpose(0, 2, 1)
    together = max(1, LARGE // max(rows * groups * inner, 1))
    results = []
    for start in range(0, batch, together):
        part = view[start : start + together]
        part = np.moveaxis(part, 1 + len(counts), 0)  # the group
        matrix = part.reshape(groups, part.shape[1] * rows, inner)
        product = np.matmul(matrix, factors)
        results.append(product.transpose(1, 0, 2).reshape(-1, *counts, groups * outputs))
    return results[0] if len(results) == 1 else np.concatenate(results)


def _depthwise(view: Array, weights: Array, groups: int) -> Array:
    """One channel in each group: sums of multiples of shifted images."""
    spatial = weights.ndim - 1
    outputs = weights.shape[0] // groups
    weights = weights.reshape(groups, outputs, *weights.shape[1:])
    shape = (*view.shape[: view.ndim - spatial], outputs)
    result = np.zeros(shape, view.dtype)
    for tap in np.ndindex(*weights.shape[2:]):
        shifted = view[(..., *tap)]
        result += shifted[..., None] * weights[(slice(None), slice(None), *tap)]
    return result.reshape(*shape[:-2], groups * outputs)
