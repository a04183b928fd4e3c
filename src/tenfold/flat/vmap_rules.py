"""The longer rules of batching, for the table in `vmap.py`; and `Batch`, which all rules are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.flat import data_ops as m, structured as s, windows as w
from tenfold.flat.build import add, broadcast_to, clamp, constant, convert, full, lt, where
from tenfold.flat.contracting import dot_general
from tenfold.flat.data_builders import (
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    gather,
    move,
    pad,
    reshape,
    squeeze,
    unsqueeze,
)
from tenfold.flat.data_ops import Ints
from tenfold.flat.folding import function, scatter, while_loop
from tenfold.flat.indexed import Gather, GatherDimensions, Scatter, ScatterDimensions
from tenfold.flat.ir import Function, Op, TensorType, Value

# How a function is batched: which dimensions of its parameters count the batch, and which results must.
Walk = Callable[[Function, int, Sequence[int | None], Sequence[bool] | None], tuple[Function, list[bool]]]


class Batch:
    """What has become of each value of a function, while its ops are batched."""

    def __init__(self, size: int, walk: Walk):
        self.size = size
        self.walk = walk
        self.values: dict[Value, Value] = {}
        self.repeated: dict[Value, Value] = {}

    def at(self, value: Value) -> Value:
        """What stands for the value, with the batch or without."""
        return self.values.get(value, value)

    def all_at(self, values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple([self.at(value) for value in values])

    def has(self, value: Value) -> bool:
        """Whether the value differs along the batch."""
        return self.at(value).type.rank > value.type.rank

    def __call__(self, value: Value) -> Value:
        """The value with the batch in front, repeated if all elements share it."""
        batched = self.at(value)
        if batched.type.rank > value.type.rank:
            return batched
        if value not in self.repeated:
            self.repeated[value] = broadcast_to(batched, (self.size, *value.shape))
        return self.repeated[value]

    def again(self, op: Op, **changed: Any) -> Op:
        """The op on operands that all have the batch; `changed` are fields that are not as they were."""
        state = {field: op.__dict__[field] for field in op.fields}
        for field, many in op.operand_fields:
            if field not in changed:
                state[field] = (
                    tuple([self(element) for element in state[field]]) if many else self(state[field])
                )
        state.update(changed)
        return type(op)(*state.values())

    def function(
        self, function: Function, having: Sequence[bool], stacked: Sequence[bool] | None = None
    ) -> tuple[Function, list[bool]]:
        """A function inside an op, for parameters of which some have the batch."""
        return self.walk(function, self.size, [0 if flag else None for flag in having], stacked)

    def through(self, build: Callable[..., Any], operands: Sequence[Value]) -> list[Value]:
        """What batching gives of `build` on the operands: for ops that are better written by others first."""
        written = function(build, [operand.type for operand in operands])
        batched, _ = self.function(written, [self.has(operand) for operand in operands])
        return batched.inline([self.at(operand) for operand in operands], whole=True)


def up(dimensions: Sequence[int]) -> Ints:
    """The same dimensions, behind one more."""
    return tuple([dimension + 1 for dimension in dimensions])


BatchRule = Callable[[Any, Batch], Op | Sequence[Value]]
# Rules for the targets of custom calls, by name.
CUSTOM_BATCHING: dict[str, BatchRule] = {}


def one_by_one(op: Op, b: Batch) -> Sequence[Value]:
    """A loop over the batch, for ops that take a single one of some operand whatever the others are."""
    if not b.size:
        return [full((0, *result.shape), 0, result.dtype) for result in op.results]
    operands = tuple(dict.fromkeys(op.operands))
    count = len(op.results)

    def step(place: Value, *carried: Value) -> list[Value]:
        given = {}
        for old, new in zip(operands, carried[count:], strict=True):
            if b.has(old):
                element = dynamic_slice(new, (place, *[0] * old.rank), (1, *old.shape))
                new = squeeze(element, 0)
            given[old] = new
        filled = [
            dynamic_update_slice(stack, unsqueeze(result, 0), (place, *[0] * result.rank))
            for stack, result in zip(carried[:count], op.replace(given).results, strict=True)
        ]
        return [add(place, 1), *filled, *carried[count:]]

    stacks = [full((b.size, *result.shape), 0, result.dtype) for result in op.results]
    start = [constant(0, dtypes.int64), *stacks, *[b.at(operand) for operand in operands]]
    return while_loop(lambda place, *_: lt(place, b.size), step, start)[1 : 1 + count]


LAPACK = "lapack_"  # how jaxlib's names for these routines begin: all take stacks of matrices


def stacked_call(op: s.CustomCall, b: Batch) -> Op:
    """A function that takes tensors with any number of dimensions in front, given one more."""
    types = [TensorType(result_type.dtype, (b.size, *result_type.shape)) for result_type in op.result_types]
    return b.again(op, result_types=tuple(types))


def custom_call_rule(op: s.CustomCall, b: Batch) -> Op | Sequence[Value]:
    """The rule of the function that is called; a function without one is called for each element."""
    target = op.call_target_name
    rule = CUSTOM_BATCHING.get(target) or CUSTOM_BATCHING.get(target.rpartition("#")[0])
    if rule is None:
        rule = stacked_call if target.startswith(LAPACK) else one_by_one
    return rule(op, b)


# Places


def dynamic_slice_rule(op: m.DynamicSlice, b: Batch) -> Op | Sequence[Value]:
    if not any(b.has(start) for start in op.starts):
        starts = b.all_at(op.starts)
        return b.again(op, starts=(_zero(starts), *starts), slice_sizes=(b.size, *op.slice_sizes))
    every = tuple(range(op.x.rank))

    def build(x: Value, *starts: Value) -> Value:
        return gather(x, _vector(starts), GatherDimensions(every, (), every, 0), op.slice_sizes)

    return b.through(build, op.operands)


def dynamic_update_slice_rule(op: m.DynamicUpdateSlice, b: Batch) -> Op | Sequence[Value]:
    if not any(b.has(start) for start in op.starts):
        starts = b.all_at(op.starts)
        return b.again(op, starts=(_zero(starts), *starts))
    every = tuple(range(op.x.rank))
    room = [extent - taken for extent, taken in zip(op.x.shape, op.update.shape, strict=True)]

    def build(x: Value, update: Value, *starts: Value) -> Value:
        # A slice that overhangs is moved inside; a scatter would leave it out.
        places = _vector(starts)
        places = clamp(places, 0, constant(room, places.dtype))
        return scatter(x, places, update, ScatterDimensions(every, (), every, 0))

    return b.through(build, op.operands)


def _zero(starts: Sequence[Value]) -> Value:
    return constant(0, starts[0].dtype if starts else dtypes.int64)


def _vector(starts: Sequence[Value]) -> Value:
    return _wide(concatenate([reshape(start, (1,)) for start in starts], 0))


def _wide(indices: Value) -> Value:
    """Indices in a dtype that can count the batch, and any room there is, as well."""
    return convert(indices, dtypes.int32) if indices.dtype.itemsize < 4 else indices


def pad_rule(op: m.Pad, b: Batch) -> Op | Sequence[Value]:
    edges = op.edge_padding_low, op.edge_padding_high
    if not b.has(op.padding_value):
        settings = [(0, *edge) for edge in (*edges, op.interior_padding)]
        return m.Pad(b(op.x), b.at(op.padding_value), *settings)

    def build(x: Value, value: Value) -> Value:
        inside = pad(full(x.shape, True, dtypes.bool_), *edges, False, op.interior_padding)
        return where(inside, pad(x, *edges, 0, op.interior_padding), value)

    return b.through(build, op.operands)


def gather_rule(op: Gather, b: Batch) -> Op:
    """A batch of x alone is one more dimension of each window, one of indices alone is more of them."""
    windows, dropped, index_map, vector, x_batching, index_batching = op.dimension_numbers
    x, indices = b.at(op.x), b.at(op.start_indices)
    windows, sizes, in_order = up(windows), op.slice_sizes, False
    if b.has(op.x):
        dropped, index_map, x_batching = up(dropped), up(index_map), up(x_batching)
    if b.has(op.start_indices):
        vector, index_batching = vector + 1, up(index_batching)
    if b.has(op.x) and b.has(op.start_indices):
        x_batching, index_batching = (0, *x_batching), (0, *index_batching)
        sizes, indices = (min(b.size, 1), *sizes), _wide(indices)
    elif b.has(op.x):
        windows, sizes, in_order = (0, *windows), (b.size, *sizes), op.indices_are_sorted
    numbers = GatherDimensions(windows, dropped, index_map, vector, x_batching, index_batching)
    return Gather(x, indices, numbers, sizes, in_order)


def scatter_rule(op: Scatter, b: Batch) -> Op:
    """Tensors that share their places have the batch as one more dimension of each window."""
    windows, dropped, index_map, vector, x_batching, index_batching = op.scatter_dimension_numbers
    indices = b.at(op.scatter_indices)
    windows, x_batching, in_order = up(windows), up(x_batching), op.indices_are_sorted
    if b.has(op.scatter_indices):
        vector, x_batching, index_batching = vector + 1, (0, *x_batching), (0, *up(index_batching))
        indices, in_order = _wide(indices), False
    else:
        windows = (0, *windows)
    numbers = ScatterDimensions(windows, up(dropped), up(index_map), vector, x_batching, index_batching)
    changed = {"scatter_indices": indices, "scatter_dimension_numbers": numbers}
    return b.again(op, **changed, indices_are_sorted=in_order)


# Products and windows


def dot_general_rule(op: s.DotGeneral, b: Batch) -> Sequence[Value]:
    """A batch on one side is one more of its free dimensions; on both it is a batch of products."""
    x_batch, y_batch, x_contract, y_contract = op.dot_dimension_numbers
    x, y = b.at(op.x), b.at(op.y)
    found_at = len(x_batch)
    if b.has(op.x):
        x_batch, x_contract = up(x_batch), up(x_contract)
    else:
        found_at += x.rank - len(x_batch) - len(x_contract)
    if b.has(op.y):
        y_batch, y_contract = up(y_batch), up(y_contract)
    if b.has(op.x) and b.has(op.y):
        x_batch, y_batch, found_at = (0, *x_batch), (0, *y_batch), 0
    product = dot_general(x, y, (x_contract, y_contract), (x_batch, y_batch), op.dtype)
    return [move(product, found_at, 0)]


def convolution_rule(op: w.Convolution, b: Batch) -> Sequence[Value]:
    """A batch of inputs joins their own batch, a batch of kernels their output features; both are groups."""
    numbers = op.dimension_numbers
    groups, batch_groups = op.feature_group_count, op.batch_group_count
    x, kernel = b.at(op.x), b.at(op.kernel)
    many = max(groups, batch_groups)
    in_batch, in_feature = numbers.input_batch_dimension, numbers.input_feature_dimension
    out_batch, out_feature = numbers.output_batch_dimension, numbers.output_feature_dimension
    kernels = numbers.kernel_output_feature_dimension
    if b.has(op.x) and b.has(op.kernel):
        if not b.size:
            return [full((0, *op.result.shape), 0, op.result.dtype)]
        if batch_groups > 1:
            x, batch_groups = _joined(x, in_batch, 1), batch_groups * b.size
        else:
            x, groups = _joined(x, in_feature, 1), groups * b.size
        kernel, at, parts = _joined(kernel, kernels, 1), out_feature, 1
    elif b.has(op.x):
        x, at, parts = _joined(x, in_batch, batch_groups), out_batch, 1
    else:
        kernel, at, parts = _joined(kernel, kernels, many), out_feature, many
    result = w.Convolution(
        x,
        kernel,
        op.window_strides,
        op.padding,
        op.lhs_dilation,
        op.rhs_dilation,
        op.window_reversal,
        numbers,
        groups,
        batch_groups,
    ).result
    return [_parted(result, at, parts, b.size, op.result.shape)]


def _joined(x: Value, dim: int, parts: int) -> Value:
    """x with its batch in dimension `dim` of what it was: within each of so many equal parts, before it."""
    size, *shape = x.shape
    split = reshape(x, (size, *shape[:dim], parts, shape[dim] // parts, *shape[dim + 1 :]))
    return reshape(move(split, 0, dim + 1), (*shape[:dim], size * shape[dim], *shape[dim + 1 :]))


def _parted(x: Value, dim: int, parts: int, size: int, shape: Ints) -> Value:
    """The other way round: the batch, which lies within each part of `dim`, in front of `shape`."""
    split = reshape(x, (*shape[:dim], parts, size, shape[dim] // parts, *shape[dim + 1 :]))
    return reshape(move(split, dim + 1, 0), (size, *shape))


# Folds


def reduce_rule(op: s.Reduce, b: Batch) -> Op | Sequence[Value]:
    if any(b.has(init) for init in op.inits):
        return one_by_one(op, b)
    return b.again(op, inits=b.all_at(op.inits), dimensions=up(op.dimensions))


def reduce_window_rule(op: w.ReduceWindow, b: Batch) -> Op | Sequence[Value]:
    if any(b.has(init) for init in op.inits):
        return one_by_one(op, b)
    return b.again(
        op,
        inits=b.all_at(op.inits),
        window_dimensions=(1, *op.window_dimensions),
        window_strides=(1, *op.window_strides),
        base_dilations=(1, *op.base_dilations),
        window_dilations=(1, *op.window_dilations),
        padding=((0, 0), *op.padding),
    )


def select_and_scatter_rule(op: w.SelectAndScatter, b: Batch) -> Op | Sequence[Value]:
    if b.has(op.init):
        return one_by_one(op, b)
    return b.again(
        op,
        init=b.at(op.init),
        window_dimensions=(1, *op.window_dimensions),
        window_strides=(1, *op.window_strides),
        padding=((0, 0), *op.padding),
    )
