"""Rules of opening for ops that move data: shapes, slices, joins. The table is in `opening.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.flat import data_ops as m
from tenfold.flat.build import add, clamp, constant, convert, full, iota, mul, sub, where
from tenfold.flat.data_builders import (
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    pad,
    reshape,
    reverse,
    slice_dim,
    take,
    transpose,
)
from tenfold.flat.ir import Value
from tenfold.flat.open_layout import SIZE, Extent, Factor, Layout, joined, physical, places, quotient
from tenfold.flat.open_state import Padding, Placed, extents_of
from tenfold.flat.sizes import Open


def broadcast_rule(op: m.BroadcastInDim, p: Padding) -> Sequence[Placed]:
    layouts = [p.sizes.simple(extent) for extent in op.shape]
    for dim, extent, layout in zip(op.broadcast_dimensions, op.x.type.shape, p.of(op.x), strict=True):
        if extent == op.shape[dim]:
            layouts[dim] = layout
        elif extent != 1:
            raise UnsupportedError("a size that is 1 at some sizes and not at others cannot be open")
    shape = tuple([physical(each) for each in layouts])
    return [(m.BroadcastInDim(p.at(op.x), shape, op.broadcast_dimensions).result, tuple(layouts))]


def transpose_rule(op: m.Transpose, p: Padding) -> Sequence[Placed]:
    layouts = p.of(op.x)
    return [(transpose(p.at(op.x), op.permutation), tuple([layouts[d] for d in op.permutation]))]


def reshape_rule(op: m.Reshape, p: Padding) -> Sequence[Placed]:
    """The same array where the factors of its dimensions can be dealt out anew, else its elements moved."""
    array, own = p.placed(op.x)
    return [_reshaped(array, own, op.x.type.shape, op.shape, p)]


def _reshaped(
    array: Value, own: Sequence[Layout], extents: Sequence[Extent], wanted: Sequence[Extent], p: Padding
) -> Placed:
    if 0 in wanted:
        layouts = [p.sizes.simple(each) for each in wanted]
        return full([physical(layout) for layout in layouts], 0, array.dtype), tuple(layouts)
    dealt = _dealt([factor for layout in own for factor in layout], wanted)
    if dealt is not None:
        return reshape(array, [physical(each) for each in dealt]), tuple(dealt)
    front = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(extents, wanted))))
    ends = zip(reversed(extents[front:]), reversed(wanted[front:]))
    back = len(list(takewhile(lambda pair: pair[0] == pair[1], ends)))
    before, after = own[:front], own[len(own) - back :]
    factors = [factor for layout in own[front : len(own) - back] for factor in layout] or [Factor(1, 1)]
    middle = [p.sizes.simple(each) for each in wanted[front : len(wanted) - back]]
    places_of = places([each[0] for each in middle] or [Factor(1, 1)], factors, p.sizes)
    count = math.prod([factor.bound for factor in factors])
    rows = reshape(array, (_count(before), count, _count(after)))
    layouts = [*before, *middle, *after]
    return reshape(take(rows, places_of, 1), [physical(layout) for layout in layouts]), tuple(layouts)


def _count(layouts: Sequence[Layout]) -> int:
    return math.prod([physical(layout) for layout in layouts])


def _dealt(factors: Sequence[Factor], wanted: Sequence[Extent]) -> list[Layout] | None:
    """The factors as those of dimensions of other extents, if none of them must be torn apart."""
    rest = [each for each in factors if each != (1, 1)]
    layouts = []
    for extent in wanted:
        taken: list[Factor] = []
        need: Extent = extent
        while need != 1:
            if not rest:
                return None
            factor = rest.pop(0)
            left = quotient(need, factor.extent)
            if left is not None:
                taken.append(factor)
                need = left
                continue
            inner = quotient(factor.extent, need)
            if not isinstance(inner, int) or factor.bound % inner:
                return None
            taken.append(Factor(need, factor.bound // inner))
            rest.insert(0, Factor(inner, inner))
            need = 1
        layouts.append(joined(taken))
    return None if rest else layouts


def slice_rule(op: m.Slice, p: Padding) -> Sequence[Placed]:
    array, layouts = p.at(op.x), list(p.of(op.x))
    bounds = zip(op.start_indices, op.strides, op.x.type.shape, op.result.type.shape, strict=True)
    for dim, (start, stride, extent, result) in enumerate(bounds):
        if start == 0 and stride == 1 and result == extent:
            continue
        wanted = p.sizes.simple(result)
        array = p.relaid(array, dim, layouts[dim], p.sizes.simple(extent))
        array = _cut(array, dim, start, stride, physical(wanted), p)
        layouts[dim] = wanted
    return [(array, tuple(layouts))]


def _cut(array: Value, dim: int, start: Extent, stride: Extent, count: int, p: Padding) -> Value:
    """So many elements of a dimension, from a place that may be open."""
    if not count:
        return slice_dim(array, dim, 0, 0)
    if isinstance(stride, Open):
        steps = mul(iota((count,), 0, SIZE), p.sizes.scalar(stride))
        return take(array, add(steps, p.sizes.scalar(start)), dim)
    size = (count - 1) * stride + 1
    array = _widened(array, dim, p.sizes.most(start) + size)
    if isinstance(start, Open):
        array = window(array, dim, p.sizes.scalar(start), size)
        start = 0
    return slice_dim(array, dim, start, start + size, stride)


def _widened(array: Value, dim: int, size: int, filler: Any = 0) -> Value:
    """The array with a dimension of at least this size."""
    missing = size - array.shape[dim]
    if missing <= 0:
        return array
    return pad(array, [0] * array.rank, [missing if d == dim else 0 for d in range(array.rank)], filler)


def window(array: Value, dim: int, start: Value, size: int) -> Value:
    """So many elements of a dimension from a place that is computed."""
    zero = constant(0, start.dtype)
    starts = [start if d == dim else zero for d in range(array.rank)]
    sizes = [size if d == dim else extent for d, extent in enumerate(array.shape)]
    return dynamic_slice(array, starts, sizes)


def pad_rule(op: m.Pad, p: Padding) -> Sequence[Placed]:
    array, layouts, filler = p.at(op.x), list(p.of(op.x)), p.at(op.padding_value)
    edges = zip(op.edge_padding_low, op.edge_padding_high, op.interior_padding, strict=True)
    for dim, (low, high, interior) in enumerate(edges):
        if low == 0 and high == 0 and interior == 0:
            continue
        own, wanted = (p.sizes.simple(each.type.shape[dim]) for each in (op.x, op.result))
        array = p.relaid(array, dim, layouts[dim], own)
        layouts[dim] = own
        array = p.masked(array, tuple(layouts), [dim], filler)
        array = _padded(array, dim, low, interior, physical(wanted), filler, p)
        layouts[dim] = wanted
    return [(array, tuple(layouts))]


def _padded(
    array: Value, dim: int, low: Extent, interior: Extent, count: int, filler: Value, p: Padding
) -> Value:
    """So many elements: from a place before the first, which may be open, the elements with others between
    them, and others behind."""
    if isinstance(interior, Open):
        raise UnsupportedError("padding between elements that follows from sizes cannot be open")
    least, most = p.sizes.interval(low)
    own = array.shape[dim]
    own += max(own - 1, 0) * interior
    total = count + most - least
    at = lambda number: [number if d == dim else 0 for d in range(array.rank)]
    array = pad(array, at(most), at(total - most - own), filler, at(interior))
    if isinstance(low, Open):
        array = window(array, dim, sub(constant(most, SIZE), p.sizes.scalar(low)), count)
    return array


def concatenate_rule(op: m.Concatenate, p: Padding) -> Sequence[Placed]:
    """Joined as they are where only the last is open; else each over the padding of the one before."""
    axis = op.dimension
    chosen = [max(several, key=len) for several in zip(*[p.of(operand) for operand in op.inputs])]
    arrays = []
    for operand in op.inputs:
        array = p.at(operand)
        for dim, own in enumerate(p.of(operand)):
            wanted = p.sizes.simple(operand.type.shape[axis]) if dim == axis else chosen[dim]
            array = p.relaid(array, dim, own, wanted)
        arrays.append(array)
    extents: list[Extent] = [operand.type.shape[axis] for operand in op.inputs]
    chosen[axis] = p.sizes.simple(op.result.type.shape[axis])
    if not any(isinstance(each, Open) for each in extents[:-1]):
        whole = concatenate(arrays, axis)
    else:
        total = sum(array.shape[axis] for array in arrays)
        whole = _widened(arrays[0], axis, total)
        offset = p.sizes.scalar(extents[0])
        zero = constant(0, SIZE)
        for array, extent in zip(arrays[1:], extents[1:]):
            starts = [offset if d == axis else zero for d in range(array.rank)]
            whole = dynamic_update_slice(whole, array, starts)
            offset = add(offset, p.sizes.scalar(extent))
    whole = _widened(whole, axis, physical(chosen[axis]))
    return [(slice_dim(whole, axis, 0, physical(chosen[axis])), tuple(chosen))]


def reverse_rule(op: m.Reverse, p: Padding) -> Sequence[Placed]:
    """Reversed with their padding, which is then in front, and moved back behind."""
    array, layouts = p.at(op.x), list(p.of(op.x))
    for dim in op.dimensions:
        extent: Extent = op.x.type.shape[dim]
        wanted = p.sizes.simple(extent)
        array = reverse(p.relaid(array, dim, layouts[dim], wanted), [dim])
        layouts[dim] = wanted
        if isinstance(extent, Open):
            count = physical(wanted)
            padding = sub(constant(count, SIZE), p.sizes.scalar(extent))
            array = window(_widened(array, dim, 2 * count), dim, padding, count)
    return [(array, tuple(layouts))]


def _inside(start: Value, extent: Extent, size: Extent, p: Padding) -> Value:
    """A start moved inside, so that so many elements of a dimension follow."""
    last = sub(p.sizes.scalar(extent), p.sizes.scalar(size))
    return clamp(start, constant(0, start.dtype), convert(last, start.dtype))


def dynamic_slice_rule(op: m.DynamicSlice, p: Padding) -> Sequence[Placed]:
    array, layouts, starts = p.at(op.x), list(p.of(op.x)), [p.at(start) for start in op.starts]
    sizes: list[int] = []
    wanted_sizes: tuple[Extent, ...] = op.slice_sizes
    for dim, (size, extent) in enumerate(zip(wanted_sizes, extents_of(op.x), strict=True)):
        if size == extent:
            starts[dim] = constant(0, starts[dim].dtype)
            sizes.append(array.shape[dim])
            continue
        own, wanted = p.sizes.simple(extent), p.sizes.simple(size)
        array = p.relaid(array, dim, layouts[dim], own)
        layouts[dim] = wanted
        sizes.append(physical(wanted))
        if isinstance(extent, Open) or isinstance(size, Open):
            starts[dim] = _inside(starts[dim], extent, size, p)
            array = _widened(array, dim, physical(own) + physical(wanted))
    return [(dynamic_slice(array, starts, sizes), tuple(layouts))]


def dynamic_update_slice_rule(op: m.DynamicUpdateSlice, p: Padding) -> Sequence[Placed]:
    array, update = p.at(op.x), p.at(op.update)
    layouts, inner = list(p.of(op.x)), list(p.of(op.update))
    starts = [p.at(start) for start in op.starts]
    partly = []  # dimensions in which the padding of the update would be written over what is there
    for dim, (size, extent) in enumerate(zip(extents_of(op.update), extents_of(op.x), strict=True)):
        if size == extent:
            update = p.relaid(update, dim, inner[dim], layouts[dim])
            inner[dim] = layouts[dim]
            starts[dim] = constant(0, starts[dim].dtype)
            continue
        own, wanted = p.sizes.simple(extent), p.sizes.simple(size)
        array, update = p.relaid(array, dim, layouts[dim], own), p.relaid(update, dim, inner[dim], wanted)
        layouts[dim], inner[dim] = own, wanted
        if isinstance(extent, Open) or isinstance(size, Open):
            starts[dim] = _inside(starts[dim], extent, size, p)
        if isinstance(size, Open):
            partly.append(dim)
    shape = array.shape
    for dim in partly:
        array = _widened(array, dim, shape[dim] + update.shape[dim])
    holds = p.mask(update.shape, tuple(inner), partly)
    if holds is not None:
        update = where(holds, update, dynamic_slice(array, starts, update.shape))
    array = dynamic_update_slice(array, update, starts)
    for dim in partly:
        array = slice_dim(array, dim, 0, shape[dim])
    return [(array, tuple(layouts))]
