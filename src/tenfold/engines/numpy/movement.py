"""Kernels that make or move data without arithmetic. Most results are views, which cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.engines.numpy.kernels import Array, Kernel, owned


def constant(op: Any) -> Kernel:
    return lambda: op.value


def iota(op: Any) -> Kernel:
    extent, shape, dtype = op.shape[op.iota_dimension], op.shape, op.dtype.numpy
    along = [1] * len(shape)
    along[op.iota_dimension] = extent

    def kernel() -> Array:
        return np.broadcast_to(np.arange(extent).astype(dtype).reshape(along), shape)

    return kernel


def broadcast_in_dim(op: Any) -> Kernel:
    """A view in which stretched dimensions have stride 0."""
    shape, dims = op.shape, op.broadcast_dimensions
    order = sorted(range(len(dims)), key=dims.__getitem__)
    aligned = [1] * len(shape)
    for extent, d in zip(op.x.shape, dims, strict=True):
        aligned[d] = extent
    if tuple(aligned) == shape and order == list(range(len(dims))):
        return lambda x: x.reshape(shape)
    if order != list(range(len(dims))):
        return lambda x: np.broadcast_to(x.transpose(order).reshape(aligned), shape)
    if op.x.dtype.numpy.kind == "V" or not op.x.numel:
        return lambda x: np.broadcast_to(x.reshape(aligned), shape)
    places = [(i, d) for i, d in enumerate(dims) if op.x.shape[i] == shape[d]]
    return _strided(shape, places, aligned)


def _strided(shape: tuple[int, ...], places: list[tuple[int, int]], aligned: list[int]) -> Kernel:
    """The same by NumPy's quickest way to a view, which takes arrays in one piece."""
    dtype_of, new = np.ndarray.dtype.__get__, np.ndarray

    def kernel(x: Array) -> Array:
        if not x.flags.c_contiguous:
            return np.broadcast_to(x.reshape(aligned), shape)
        strides = [0] * len(shape)
        for i, d in places:
            strides[d] = x.strides[i]
        return new(shape, dtype_of(x), x, 0, strides)

    return kernel


def reshape(op: Any) -> Kernel:
    shape = op.shape
    return lambda x: x.reshape(shape)


def transpose(op: Any) -> Kernel:
    permutation = op.permutation
    return lambda x: x.transpose(permutation)


def slice_(op: Any) -> Kernel:
    parts = tuple(map(slice, op.start_indices, op.limit_indices, op.strides))
    return lambda x: x[(*parts, ...)]


def reverse(op: Any) -> Kernel:
    parts = tuple([slice(None, None, -1 if d in op.dimensions else None) for d in range(op.x.rank)])
    return lambda x: x[(*parts, ...)]


def concatenate(op: Any) -> Kernel:
    axis = op.dimension
    return lambda *arrays: np.concatenate(arrays, axis)


def dynamic_slice(op: Any) -> Kernel:
    part = _inside(op.x.shape, op.slice_sizes)
    return lambda x, *starts: x[part(starts)]


def dynamic_update_slice(op: Any) -> Kernel:
    part = _inside(op.x.shape, op.update.shape)

    def kernel(x: Array, update: Array, *starts: Array) -> Array:
        result = x if owned(x) else x.copy()
        result[part(starts)] = update
        return result

    return kernel


def _inside(extents: tuple[int, ...], sizes: tuple[int, ...]) -> Kernel:
    """Which part of an array slices of these sizes are, moved inside where they overhang."""
    limits = [extent - size for extent, size in zip(extents, sizes, strict=True)]
    if len(limits) == 1:
        (limit,), (length,) = limits, sizes

        def stretch(starts: tuple[Array, ...]) -> tuple[Any, ...]:
            first = min(max(int(starts[0]), 0), limit)
            return slice(first, first + length), ...

        return stretch

    def part(starts: tuple[Array, ...]) -> tuple[Any, ...]:
        firsts = [min(max(int(start), 0), limit) for start, limit in zip(starts, limits, strict=True)]
        return (*[slice(first, first + size) for first, size in zip(firsts, sizes, strict=True)], ...)

    return part


def pad(op: Any) -> Kernel:
    return padded(op.x.shape, op.result.shape, op.edge_padding_low, op.interior_padding, op.x.dtype.numpy)


def padded(
    extents: tuple[int, ...],
    shape: tuple[int, ...],
    low: tuple[int, ...],
    interior: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Kernel:
    """From an array and a padding value to an array of the shape. Elements lie `interior` + 1 apart and begin
    at `low`, which is negative where it cuts."""
    sources, targets = [], []
    for extent, length, before, between in zip(extents, shape, low, interior, strict=True):
        step = between + 1
        first = 0 if before >= 0 else -(before // step)
        last = min(extent, (length - 1 - before) // step + 1) if length else 0
        count = max(last - first, 0)
        start = before + first * step
        sources.append(slice(first, first + count))
        targets.append(slice(start, start + (count - 1) * step + 1, step) if count else slice(0, 0))
    source: tuple[Any, ...] = (*sources, ...)
    target: tuple[Any, ...] = (*targets, ...)

    def kernel(x: Array, padding: Array) -> Array:
        if dtype.kind == "f" and not padding and not np.signbit(padding):
            result = np.zeros(shape, dtype)
        else:
            result = np.empty(shape, dtype)
            result[...] = padding
        result[target] = x[source]
        return result

    return kernel


def barrier(op: Any) -> Kernel:
    return (lambda x: x) if len(op.results) == 1 else lambda *arrays: arrays
