"""Builders that move data: shapes, slices, joins, gathers. Dimensions may be negative."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.base import dtypes
from tenfold.base.errors import ShapeError
from tenfold.flat import data_ops as m
from tenfold.flat.build import Ints, Operand, axis, constant, full, iota, known
from tenfold.flat.indexed import Gather, GatherDimensions
from tenfold.flat.ir import Value


def reshape(x: Value, shape: Sequence[int]) -> Value:
    """x with another shape; one extent may be -1."""
    shape = tuple(shape)
    if -1 in shape:
        shape = _inferred(x, shape)
    return x if x.type.shape == shape else m.Reshape(x, shape).result


def _inferred(x: Value, shape: Ints) -> Ints:
    extents = 1
    for extent in shape:
        extents *= extent if extent != -1 else 1
    if shape.count(-1) > 1:
        raise ShapeError(f"cannot reshape {x.type} to {list(shape)}: only one dimension can be inferred")
    if extents == 0 or x.numel % extents:
        raise ShapeError(
            f"cannot reshape {x.type} to {list(shape)}: {x.numel} elements do not divide by {extents}"
        )
    return tuple([x.numel // extents if extent == -1 else extent for extent in shape])


def transpose(x: Value, permutation: Sequence[int]) -> Value:
    permutation = tuple(permutation)
    return x if permutation == tuple(range(x.rank)) else m.Transpose(x, permutation).result


def swap(x: Value, dim0: int, dim1: int) -> Value:
    """x with two dimensions exchanged."""
    order = list(range(x.rank))
    if x.rank:
        i, j = axis(dim0, x.rank), axis(dim1, x.rank)
        order[i], order[j] = j, i
    return transpose(x, order)


def move(x: Value, source: int, destination: int) -> Value:
    """x with one dimension moved elsewhere."""
    source, destination = axis(source, x.rank), axis(destination, x.rank)
    order = [d for d in range(x.rank) if d != source]
    order.insert(destination, source)
    return transpose(x, order)


def unsqueeze(x: Value, dim: int) -> Value:
    dim = axis(dim, x.rank + 1)
    return reshape(x, (*x.shape[:dim], 1, *x.shape[dim:]))


def squeeze(x: Value, dim: int) -> Value:
    dim = axis(dim, x.rank)
    return reshape(x, (*x.shape[:dim], *x.shape[dim + 1 :]))


def slice(
    x: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
) -> Value:
    return m.Slice(x, tuple(starts), tuple(limits), tuple(strides) if strides else (1,) * x.rank).result


def slice_dim(x: Value, dim: int, start: int, limit: int, stride: int = 1) -> Value:
    """x[..., start:limit:stride, ...] along one dimension, bounds already inside."""
    dim = axis(dim, x.rank)
    starts, limits, strides = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[dim], limits[dim], strides[dim] = start, limit, stride
    return slice(x, starts, limits, strides)


def dynamic_slice(x: Value, starts: Sequence[Operand], sizes: Sequence[int]) -> Value:
    return m.DynamicSlice(x, _places(starts), tuple(sizes)).result


def dynamic_update_slice(x: Value, update: Value, starts: Sequence[Operand]) -> Value:
    return m.DynamicUpdateSlice(x, update, _places(starts)).result


def read_at(stack: Value, place: Value) -> Value:
    """What lies at a place of the first dimension."""
    shape = stack.shape[1:]
    return reshape(dynamic_slice(stack, [place, *[0] * len(shape)], (1, *shape)), shape)


def written_at(stack: Value, x: Value, place: Value) -> Value:
    """The stack with x at a place of the first dimension."""
    return dynamic_update_slice(stack, unsqueeze(x, 0), [place, *[0] * x.rank])


def _places(starts: Sequence[Operand]) -> tuple[Value, ...]:
    values = [start for start in starts if isinstance(start, Value)]
    dtype = values[0].dtype if values else dtypes.int64
    return tuple([start if isinstance(start, Value) else constant(start, dtype) for start in starts])


def concatenate(values: Sequence[Value], dim: int) -> Value:
    values = tuple(values)
    return values[0] if len(values) == 1 else m.Concatenate(values, dim).result


def pad(
    x: Value,
    low: Sequence[int],
    high: Sequence[int],
    value: Operand = 0,
    interior: Sequence[int] | None = None,
) -> Value:
    filler = value if isinstance(value, Value) and known(value) else constant(value, x.dtype)
    return m.Pad(x, filler, tuple(low), tuple(high), tuple(interior) if interior else (0,) * x.rank).result


def reverse(x: Value, dims: Sequence[int]) -> Value:
    return m.Reverse(x, tuple(dims)).result if dims else x


def gather(x: Value, indices: Value, numbers: GatherDimensions, sizes: Sequence[int]) -> Value:
    return Gather(x, indices, numbers, tuple(sizes), False).result


def take(x: Value, indices: Value, dim: int) -> Value:
    """x[..., indices, ...]: the dimensions of `indices` stand where `dim` stood. Indices are not negative."""
    dim = axis(dim, x.rank)
    rank = indices.rank
    if not x.shape[dim] and 0 in indices.shape:  # StableHLO takes no slice of one element from none
        return full((*x.shape[:dim], *indices.shape, *x.shape[dim + 1 :]), 0, x.dtype)
    numbers = GatherDimensions(
        offset_dims=(*range(dim), *range(dim + rank, x.rank - 1 + rank)),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        index_vector_dim=rank,
    )
    return gather(x, indices, numbers, [1 if d == dim else extent for d, extent in enumerate(x.shape)])


def take_along(x: Value, indices: Value, dim: int) -> Value:
    """torch.gather: result[i][j] = x[i][indices[i][j]], each other dimension of indices at most x's."""
    dim = axis(dim, x.rank)
    starts = concatenate([unsqueeze(each, indices.rank) for each in grid(indices, dim)], indices.rank)
    numbers = GatherDimensions((), tuple(range(x.rank)), tuple(range(x.rank)), indices.rank)
    return gather(x, starts, numbers, (1,) * x.rank)


def grid(indices: Value, dim: int) -> list[Value]:
    """For each dimension the index that `indices`, standing for `dim`, reads there."""
    return [indices if d == dim else iota(indices.shape, d, indices.dtype) for d in range(indices.rank)]
