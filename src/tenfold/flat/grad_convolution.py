"""The gradient rule of convolutions, by input and by kernel. Each is a convolution too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenfold.flat import contracting as c, data_builders as mv
from tenfold.flat.build import full_like
from tenfold.flat.ir import Value
from tenfold.flat.partials import conj
from tenfold.flat.windows import ConvDimensions, Convolution, dilated


def convolution(ct: Value, op: Convolution) -> tuple[Any, Any]:
    return lambda: _by_input(ct, op), lambda: _by_kernel(ct, op)


def _turned(kernel: Value, op: Convolution) -> Value:
    """The kernel with those dimensions reversed that the op reverses, or is to."""
    dims = op.dimension_numbers.kernel_spatial_dimensions
    return mv.reverse(kernel, [d for d, reversed in zip(dims, op.window_reversal) if reversed])


def _split(x: Value, dim: int, groups: int) -> Value:
    return mv.reshape(x, (*x.shape[:dim], groups, x.shape[dim] // groups, *x.shape[dim + 1 :]))


def _merge(x: Value, dim: int) -> Value:
    """x with a dimension and the one after it made one."""
    return mv.reshape(x, (*x.shape[:dim], x.shape[dim] * x.shape[dim + 1], *x.shape[dim + 2 :]))


def _groups_moved(x: Value, source: int, target: int, groups: int) -> Value:
    """x with the groups into which one dimension divides leading another instead."""
    return _merge(mv.move(_split(x, source, groups), source, target), target)


def _extents(ct: Value, op: Convolution) -> Iterator[tuple[int, int, int, int]]:
    """For each spatial dimension the padding in front, and the sizes of the dilated input, the dilated
    kernel, and the cotangent spread by the strides."""
    n = op.dimension_numbers
    for i, (low, _) in enumerate(op.padding):
        yield (
            low,
            dilated(op.x.shape[n.input_spatial_dimensions[i]], op.lhs_dilation[i]),
            dilated(op.kernel.shape[n.kernel_spatial_dimensions[i]], op.rhs_dilation[i]),
            dilated(ct.shape[n.output_spatial_dimensions[i]], op.window_strides[i]),
        )


def _by_input(ct: Value, op: Convolution) -> Value:
    """The kernel turned round, over the cotangent spread by the strides."""
    x, n = op.x, op.dimension_numbers
    if not ct.numel or not x.numel:
        return full_like(x, 0)
    groups = max(op.feature_group_count, op.batch_group_count)
    kernel = _turned(conj(op.kernel), op)
    padding = [(reach - 1 - low, extent + low - spread) for low, extent, reach, spread in _extents(ct, op)]
    kernel = mv.reverse(kernel, n.kernel_spatial_dimensions)
    inward, outward = n.kernel_input_feature_dimension, n.kernel_output_feature_dimension
    if groups > 1:
        kernel = _groups_moved(kernel, outward, inward, groups)
    numbers = ConvDimensions(*n[6:], outward, inward, n.kernel_spatial_dimensions, *n[:3])
    gradient = c.convolution(
        ct,
        kernel,
        numbers,
        strides=op.lhs_dilation,
        padding=padding,
        x_dilation=op.window_strides,
        kernel_dilation=op.rhs_dilation,
        groups=groups,
    )
    if op.batch_group_count > 1:
        gradient = _groups_moved(gradient, n.input_feature_dimension, n.input_batch_dimension, groups)
    return gradient


def _by_kernel(ct: Value, op: Convolution) -> Value:
    """The input convolved with the cotangent: batches and channels change places."""
    x, kernel, n = op.x, op.kernel, op.dimension_numbers
    if not ct.numel or not x.numel:
        return full_like(kernel, 0)
    padding = [(low, spread + reach - 1 - extent - low) for low, extent, reach, spread in _extents(ct, op)]
    numbers = ConvDimensions(
        n.input_feature_dimension,
        n.input_batch_dimension,
        n.input_spatial_dimensions,
        n.output_batch_dimension,
        n.output_feature_dimension,
        n.output_spatial_dimensions,
        n.kernel_input_feature_dimension,
        n.kernel_output_feature_dimension,
        n.kernel_spatial_dimensions,
    )
    gradient = c.convolution(
        conj(x),
        ct,
        numbers,
        strides=op.rhs_dilation,
        padding=padding,
        x_dilation=op.lhs_dilation,
        kernel_dilation=op.window_strides,
        groups=op.batch_group_count,
        batch_groups=op.feature_group_count,
    )
    return _turned(gradient, op)
