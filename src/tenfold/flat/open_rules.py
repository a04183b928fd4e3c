"""Rules of opening for ops that compute: elementwise, contractions, reductions, gathers. What reads across an
open dimension masks its padding. The table is in `opening.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import UnsupportedError
from tenfold.flat import data_ops as m, elementwise as e, structured as s, windows as w
from tenfold.flat.build import (
    add,
    broadcast_to,
    clamp,
    constant,
    convert,
    div,
    eq,
    gt,
    invert,
    logical_and,
    logical_or,
    lt,
    where,
)
from tenfold.flat.data_builders import concatenate, reshape, slice_dim
from tenfold.flat.folding import function
from tenfold.flat.indexed import Gather, Scatter
from tenfold.flat.ir import Op, TensorType, Value
from tenfold.flat.open_layout import SIZE, Extent, Layout, Layouts, physical, plain, times
from tenfold.flat.open_moves import _reshaped
from tenfold.flat.open_state import Padding, Placed, closed, extents_of
from tenfold.flat.sizes import Open


def elementwise(op: Op, p: Padding) -> Sequence[Placed]:
    arrays, layouts = p.alike(op.operands)
    return [(p.again(op, arrays).result, layouts)]


def barrier(op: e.OptimizationBarrier, p: Padding) -> Sequence[Placed]:
    results = p.again(op, [p.at(operand) for operand in op.operands])
    return [(array, p.of(operand)) for array, operand in zip(results.results, op.operands, strict=True)]


def bitcast(op: e.BitcastConvert, p: Padding) -> Sequence[Placed]:
    array = p.again(op, [p.at(op.x)]).result
    layouts = p.of(op.x)
    if op.result.rank < op.x.rank:
        layouts = layouts[:-1]
    elif op.result.rank > op.x.rank:
        layouts = (*layouts, p.sizes.simple(op.result.type.shape[-1]))
    return [(array, layouts)]


def literal(op: m.Constant, p: Padding) -> Sequence[Placed]:
    """A literal some of whose numbers follow from the sizes, as the divisor of a mean."""
    value: Any = op.value
    scalars = [p.sizes.number(number, op.dtype) for number in value.numbers]
    array = concatenate([reshape(scalar, (1,)) for scalar in scalars], 0)
    return [(reshape(array, value.shape), closed(op.result.type))]


def counted(op: m.Iota, p: Padding) -> Sequence[Placed]:
    layouts = tuple([p.sizes.simple(extent) for extent in op.shape])
    shape = tuple([physical(layout) for layout in layouts])
    return [(m.Iota(op.dtype, shape, op.iota_dimension).result, layouts)]


def check_rule(op: s.Check, p: Padding) -> Sequence[Placed]:
    array, layouts = p.placed(op.x)
    return [(s.Check(array, p.at(op.holds), op.error, op.message).result, layouts)]


# Contractions


def dot_general_rule(op: s.DotGeneral, p: Padding) -> Sequence[Placed]:
    numbers = op.dot_dimension_numbers
    x, y = p.at(op.x), p.at(op.y)
    xs, ys = list(p.of(op.x)), list(p.of(op.y))
    pairs = (
        *zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions),
        *zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions),
    )
    for i, j in pairs:
        wanted = max(xs[i], ys[j], key=len)
        x, y = p.relaid(x, i, xs[i], wanted), p.relaid(y, j, ys[j], wanted)
        xs[i] = ys[j] = wanted
    x = p.masked(x, tuple(xs), numbers.lhs_contracting_dimensions, 0)
    y = p.masked(y, tuple(ys), numbers.rhs_contracting_dimensions, 0)
    gone_x = {*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions}
    gone_y = {*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions}
    layouts = [xs[i] for i in numbers.lhs_batching_dimensions]
    layouts += [dim for i, dim in enumerate(xs) if i not in gone_x]
    layouts += [dim for j, dim in enumerate(ys) if j not in gone_y]
    return [(s.DotGeneral(x, y, numbers, op.dtype).result, tuple(layouts))]


def convolution_rule(op: w.Convolution, p: Padding) -> Sequence[Placed]:
    numbers = op.dimension_numbers
    (x, xs), (kernel, ks) = p.placed(op.x), p.placed(op.kernel)
    features = (numbers.input_feature_dimension, numbers.kernel_input_feature_dimension)
    grouped = op.feature_group_count > 1 or op.batch_group_count > 1
    inner = (xs[features[0]], ks[features[1]], ks[numbers.kernel_output_feature_dimension])
    if grouped and not all(dimension.full for layout in inner for dimension in layout):
        raise UnsupportedError("channels in groups cannot be open")
    if op.batch_group_count > 1 and not all(each.full for each in xs[numbers.input_batch_dimension]):
        raise UnsupportedError("a batch in groups cannot be open")
    across = [features[0], *numbers.input_spatial_dimensions]
    within = [features[1], *numbers.kernel_spatial_dimensions]
    x, kernel = p.simple(op.x, across), p.simple(op.kernel, within)
    simple_x, simple_k = _simple(op.x, across, xs, p), _simple(op.kernel, within, ks, p)
    x, kernel = p.masked(x, simple_x, across, 0), p.masked(kernel, simple_k, within, 0)
    layouts: list[Layout] = [()] * op.x.rank
    layouts[numbers.output_batch_dimension] = (
        xs[numbers.input_batch_dimension]
        if op.batch_group_count == 1
        else p.sizes.simple(op.result.type.shape[numbers.output_batch_dimension])
    )
    layouts[numbers.output_feature_dimension] = ks[numbers.kernel_output_feature_dimension]
    padding = []
    for i, dim in enumerate(numbers.output_spatial_dimensions):
        layouts[dim] = p.sizes.simple(op.result.type.shape[dim])
        axis = numbers.input_spatial_dimensions[i]
        window = w.dilated(kernel.shape[numbers.kernel_spatial_dimensions[i]], op.rhs_dilation[i])
        x, edges = _edges(
            x, axis, physical(layouts[dim]), window, op.window_strides[i], op.lhs_dilation[i], op.padding[i]
        )
        padding.append(edges)
    return [(p.again(op, [x, kernel], padding=tuple(padding)).result, tuple(layouts))]


def _simple(value: Value, dims: Sequence[int], layouts: Layouts, p: Padding) -> Layouts:
    """The layouts after these dimensions were put in one row."""
    rows = {dim: p.sizes.simple(value.type.shape[dim]) for dim in dims}
    return tuple([rows.get(dim, layout) for dim, layout in enumerate(layouts)])


def _edges(
    x: Value, axis: int, count: int, window: int, stride: Any, dilation: Any, edges: Any
) -> tuple[Value, tuple[int, int]]:
    """By what to widen a dimension at its ends for so many windows. What lies behind its valid elements is
    masked, so it may be cut where that is too much."""
    low = edges[0]
    if isinstance(low, Open) or isinstance(stride, Open) or isinstance(dilation, Open):
        raise UnsupportedError("windows whose step or first edge follows from sizes cannot be open")
    high = (count - 1) * stride + window - w.dilated(x.shape[axis], dilation) - low
    if high < 0:
        keep = x.shape[axis] + high // dilation
        high += (x.shape[axis] - keep) * dilation
        x = slice_dim(x, axis, 0, keep)
    return x, (low, high)


# Folds


def reduce_rule(op: s.Reduce, p: Padding) -> Sequence[Placed]:
    arrays, layouts = p.alike(op.inputs)
    inits = [p.at(init) for init in op.inits]
    masked = [p.masked(x, layouts, op.dimensions, init) for x, init in zip(arrays, inits, strict=True)]
    kept = tuple([layout for dim, layout in enumerate(layouts) if dim not in op.dimensions])
    return [(result, kept) for result in p.again(op, [*masked, *inits]).results]


def reduce_window_rule(op: w.ReduceWindow, p: Padding) -> Sequence[Placed]:
    arrays, layouts = p.alike(op.inputs)
    inits = [p.at(init) for init in op.inits]
    outcome = list(layouts)
    windows: list[Any] = list(op.window_dimensions)
    padding = list(op.padding)
    for dim, extent in enumerate(op.inputs[0].type.shape):
        dilations = (op.base_dilations[dim], op.window_dilations[dim])
        stride, window, edges = op.window_strides[dim], windows[dim], tuple(padding[dim])
        if (window, stride, edges, dilations) == (1, 1, (0, 0), (1, 1)):
            continue
        own = p.sizes.simple(extent)
        arrays = [p.relaid(array, dim, layouts[dim], own) for array in arrays]
        layouts = (*layouts[:dim], own, *layouts[dim + 1 :])
        arrays = [p.masked(x, layouts, [dim], init) for x, init in zip(arrays, inits, strict=True)]
        outcome[dim] = p.sizes.simple(op.result.type.shape[dim])
        if isinstance(window, Open):
            windows[dim], padding[dim] = _whole(extent, window, stride, edges, dilations, physical(own))
            continue
        wide = w.dilated(window, dilations[1])
        cut = [_edges(x, dim, physical(outcome[dim]), wide, stride, dilations[0], edges) for x in arrays]
        arrays, padding[dim] = [each for each, _ in cut], cut[0][1]
    results = p.again(op, [*arrays, *inits], window_dimensions=tuple(windows), padding=tuple(padding))
    return [(result, tuple(outcome)) for result in results.results]


def _whole(
    extent: Extent, window: Extent, stride: Any, edges: Any, dilations: Any, count: int
) -> tuple[int, tuple[int, int]]:
    """A window over a whole dimension, with what is before each element, what is behind it, or just once."""
    assert isinstance(window, Open)
    less = plain([value - 1 for value in window.values])
    if window == extent and stride == 1 and dilations == (1, 1):
        for known, at_bound in (((less, 0), (count - 1, 0)), ((0, less), (0, count - 1)), ((0, 0), (0, 0))):
            if edges == known:
                return count, at_bound
    raise UnsupportedError("a window whose size follows from sizes cannot be open")


def sort_rule(op: s.Sort, p: Padding) -> Sequence[Placed]:
    """Sorted by whether an element is padding first."""
    arrays, layouts = p.alike(op.inputs)
    axis = op.dimension
    own = p.sizes.simple(op.inputs[0].type.shape[axis])
    arrays = [p.relaid(array, axis, layouts[axis], own) for array in arrays]
    layouts = (*layouts[:axis], own, *layouts[axis + 1 :])
    holds = p.mask(arrays[0].shape, layouts, [axis])
    if holds is None:
        return [(result, layouts) for result in p.again(op, arrays).results]

    def before(left: Value, right: Value, *elements: Value) -> Value:
        (usual,) = op.comparator.inline(elements, whole=True)
        return logical_or(lt(left, right), logical_and(eq(left, right), usual))

    padding = convert(invert(holds), SIZE)
    scalars = [TensorType(array.dtype, ()) for array in (padding, *arrays) for _ in range(2)]
    results = s.Sort((padding, *arrays), axis, op.is_stable, function(before, scalars))
    return [(result, layouts) for result in results.results[1:]]


def batch_rule(op: Op, p: Padding) -> Sequence[Placed]:
    """Ops on stacks of vectors or matrices: the stack may be open, they may not."""
    inner = {s.TopK: 1, s.Fft: len(getattr(op, "fft_length", ()))}.get(type(op), 2)
    for each in op.operands:
        if any(isinstance(extent, Open) for extent in each.type.shape[-inner:]):
            name = op.name.partition(".")[2]
            raise UnsupportedError(f"{name} over a dimension of open size has no form for open sizes")
    arrays = [p.at(each) for each in op.operands]
    outer = p.of(op.operands[0])[:-inner]
    for i, operand in enumerate(op.operands[1:], 1):
        for dim, (own, wanted) in enumerate(zip(p.of(operand), outer)):
            arrays[i] = p.relaid(arrays[i], dim, own, wanted)
    results = p.again(op, arrays).results
    return [
        (array, (*outer, *[p.sizes.simple(extent) for extent in result.type.shape[-inner:]]))
        for array, result in zip(results, op.results, strict=True)
    ]


# Random numbers


def random_rule(op: s.RngBitGenerator, p: Padding) -> Sequence[Placed]:
    """The bits that a program of the true size would make: Philox makes them in the order of memory, so the
    first ones are the same however many are made. So is the state that it leaves."""
    state = p.at(op.state)
    total: Extent = 1
    for extent in op.shape:
        total = times(total, extent)
    (row,) = p.sizes.simple(total)
    bits = s.RngBitGenerator(state, op.dtype, (row.bound,)).results[1]
    # Each step of the counter makes 16 bytes.
    lanes = max(16 // op.dtype.itemsize, 1)
    steps = convert(div(add(p.sizes.scalar(total), lanes - 1), lanes), dtypes.uint64)
    counter = add(slice_dim(state, 0, 1, 2), reshape(steps, (1,)))
    carried = [slice_dim(state, 0, 0, 1), counter]
    if state.shape == (3,):
        over = convert(lt(counter, reshape(steps, (1,))), dtypes.uint64)
        carried.append(add(slice_dim(state, 0, 2, 3), over))
    array, layouts = _reshaped(bits, [(row,)], [total], op.shape, p)
    return [(concatenate(carried, 0), closed(op.state.type)), (array, layouts)]


# Computed places


def gather_rule(op: Gather, p: Padding) -> Sequence[Placed]:
    numbers = op.dimension_numbers
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    x, xs = p.at(op.x), list(p.of(op.x))
    sizes = list(op.slice_sizes)
    for dim in numbers.start_index_map:
        row = p.sizes.simple(op.x.type.shape[dim])
        x, xs[dim] = p.relaid(x, dim, xs[dim], row), row
    indices, ins = p.placed(op.start_indices)
    for dim, other in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims):
        x, xs[dim] = p.relaid(x, dim, xs[dim], ins[other]), ins[other]
    last: list[Value] = []  # the last place along each dimension that an index may name
    for dim, extent in enumerate(extents_of(op.x)):
        size: Extent = sizes[dim]
        if size == extent and dim not in dropped:
            sizes[dim] = x.shape[dim]
        elif isinstance(size, Open):
            raise UnsupportedError("slices whose size follows from sizes cannot be open")
    for dim in numbers.start_index_map:
        most = p.sizes.scalar(op.x.type.shape[dim])
        least = p.sizes.scalar(op.slice_sizes[dim])
        last.append(convert(most - least, indices.dtype))
    if any(isinstance(op.x.type.shape[dim], Open) for dim in numbers.start_index_map):
        indices = clamp(
            indices, constant(0, indices.dtype), _components(last, numbers.index_vector_dim, indices)
        )
    gathered = Gather(x, indices, numbers, tuple(sizes), False).result
    window = iter([xs[d] for d in range(op.x.rank) if d not in dropped])
    around = iter([each for d, each in enumerate(ins) if d != numbers.index_vector_dim])
    layouts = [
        _of_window(next(window), op.result.type.shape[d], p) if d in numbers.offset_dims else next(around)
        for d in range(op.result.rank)
    ]
    return [(gathered, tuple(layouts))]


def _of_window(layout: Layout, extent: Extent, p: Padding) -> Layout:
    """How a dimension of a window lies: as it did where it is whole."""
    whole = layout[0].extent
    for dimension in layout[1:]:
        whole = times(whole, dimension.extent)
    return layout if whole == extent else p.sizes.simple(extent)


def _components(scalars: Sequence[Value], axis: int, indices: Value) -> Value:
    """One number for each component of an index, in the shape of the indices."""
    if axis == indices.rank:
        return broadcast_to(scalars[0], indices.shape)
    vector = concatenate([reshape(scalar, (1,)) for scalar in scalars], 0)
    column = reshape(vector, [-1 if d == axis else 1 for d in range(indices.rank)])
    return broadcast_to(column, indices.shape)


def scatter_rule(op: Scatter, p: Padding) -> Sequence[Placed]:
    """Updates that are padding go nowhere: their places are outside."""
    numbers = op.scatter_dimension_numbers
    if not numbers.scatter_dims_to_operand_dims:
        raise UnsupportedError("a scatter without indices cannot be open")
    inputs, xs = p.alike(op.inputs)
    updates, us = p.alike(op.updates)
    indices, ins = p.placed(op.scatter_indices)
    dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [d for d in range(op.inputs[0].rank) if d not in dropped]
    wanted: dict[int, Layout] = {
        dim: p.sizes.simple(op.inputs[0].type.shape[dim]) for dim in numbers.scatter_dims_to_operand_dims
    }
    batches = zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims)
    wanted.update({dim: ins[other] for dim, other in batches})
    for dim, layout in wanted.items():
        inputs = [p.relaid(operand, dim, xs[dim], layout) for operand in inputs]
    xs = tuple([wanted.get(dim, x) for dim, x in enumerate(xs)])
    around = [each for d, each in enumerate(ins) if d != numbers.index_vector_dim]
    outer = iter(around)
    sizes: dict[int, Extent] = dict.fromkeys(range(op.inputs[0].rank), 1)
    for dim in range(op.updates[0].rank):
        if dim in numbers.update_window_dims:
            axis = kept[numbers.update_window_dims.index(dim)]
            extent: Extent = op.updates[0].type.shape[dim]
            sizes[axis] = extent
            if extent != op.inputs[0].type.shape[axis] and isinstance(extent, Open):
                raise UnsupportedError("updates whose size follows from sizes cannot be open")
            layout = xs[axis] if extent == op.inputs[0].type.shape[axis] else p.sizes.simple(extent)
        else:
            layout = next(outer)
        updates = [p.relaid(update, dim, us[dim], layout) for update in updates]
    indices = _outside(op, indices, ins, sizes, p)
    scattered = p.again(op, [*inputs, indices, *updates], indices_are_sorted=False, unique_indices=False)
    return [(result, xs) for result in scattered.results]


def _outside(op: Scatter, indices: Value, ins: Layouts, sizes: dict[int, Extent], p: Padding) -> Value:
    """The indices, those of padding and those that a program of the true size would leave out outside."""
    numbers = op.scatter_dimension_numbers
    axis = numbers.index_vector_dim
    if not indices.dtype.is_signed:
        indices = convert(indices, dtypes.int64)
    nowhere = constant(-1, indices.dtype)
    dims = numbers.scatter_dims_to_operand_dims
    whole = op.inputs[0].type.shape
    if any(isinstance(whole[dim], Open) for dim in dims):
        last = [
            convert(p.sizes.scalar(whole[dim]) - p.sizes.scalar(sizes[dim]), indices.dtype) for dim in dims
        ]
        indices = where(gt(indices, _components(last, axis, indices)), nowhere, indices)
    return p.masked(indices, ins, [d for d in range(indices.rank) if d != axis], nowhere)
