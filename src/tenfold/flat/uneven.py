"""Arrays that the devices of a mesh do not divide, as arrays that they do: with padding after each part. XLA
takes and gives parts of one shape, and its partitioner fails for some ops whose operands it splits unevenly.
So a pass over a function lets it take and give padded arrays. Ops that have a rule here compute with the
padding, which never reaches a valid element; for the others it is cut off first.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tenfold.base.meshes import Axis, Mesh, Partitioned, Sharding, stretches
from tenfold.flat import data_ops as m, elementwise as e, structured as s
from tenfold.flat.build import ge, iota, lt, where
from tenfold.flat.data_builders import concatenate, pad, reshape, slice, transpose
from tenfold.flat.ir import Function, Op, TensorType, Value, give_source
from tenfold.flat.sharding import ShardingConstraint, constrained

Padded = dict[int, tuple[Axis, ...]]  # the dimensions that have padding, and the axes that split them


class Evened(NamedTuple):
    """A function of arrays with padding, and how they lie on the mesh."""

    function: Function
    layout: Partitioned


def evened(function: Function, layout: Partitioned) -> Evened:
    """The function on arrays with padding where the devices do not divide them."""
    if not _any_uneven(function, layout):
        return Evened(function, layout)
    padding = Padding(layout.mesh)
    params = []
    for param, placed in zip(function.params, layout.params, strict=True):
        array = Value(TensorType(param.dtype, placed.padded(param.shape)))
        array.name = param.name
        params.append(array)
        padding.put(param, array, _uneven(placed, param.shape))
    padding.follow(function.ops)
    results, shardings = [], list(layout.results)
    for i, result in enumerate(function.results):
        told = shardings[i] if i < len(shardings) else None
        if told is None:
            results.append(padding.array(result))
            if i < len(shardings):
                shardings[i] = padding.sharding(result)
            continue
        dims = _uneven(told, result.shape)
        results.append(constrained(padding.like(result, dims), told) if dims else padding.whole(result))
    return Evened(
        Function(params, results, function.name), Partitioned(layout.mesh, layout.params, shardings)
    )


def _any_uneven(function: Function, layout: Partitioned) -> bool:
    """Whether some value is split unevenly: a parameter, or one that is redistributed."""
    pairs = [*zip(function.params, layout.params, strict=True)]
    pairs += [(op.x, op.sharding) for op in function.ops if isinstance(op, ShardingConstraint)]
    return any(not sharding.is_even(value.shape) for value, sharding in pairs)


def _uneven(placed: Sharding, shape: Sequence[int]) -> Padded:
    pairs = zip(placed.dims, placed.parts, shape, strict=True)
    return {dim: axes for dim, (axes, parts, extent) in enumerate(pairs) if axes and extent % parts}


class Padding:
    """The arrays that stand for a function's values, some of them with padding."""

    def __init__(self, mesh: Mesh):
        self.mesh = mesh
        self.arrays: dict[Value, Value] = {}
        self.padded: dict[Value, Padded] = {}
        self.wholes: dict[Value, Value] = {}

    def put(self, value: Value, array: Value, dims: Padded) -> None:
        self.arrays[value] = array
        if dims:
            self.padded[value] = dims

    def follow(self, ops: Iterable[Op]) -> None:
        made: set[Op] = set()
        for op in ops:
            rule = RULES.get(type(op))
            reaches = isinstance(op, ShardingConstraint) or any(each in self.padded for each in op.operands)
            outcome = rule(op, self) if reaches and rule is not None else None
            if outcome is None:
                copy = op.replace({operand: self.whole(operand) for operand in op.operands})
                self.arrays.update(zip(op.results, copy.results, strict=True))
                made.add(copy)
                continue
            arrays, dims = outcome
            for result, array in zip(op.results, arrays, strict=True):
                self.put(result, array, dims)
            give_source(arrays, op.source, made)

    def dims(self, value: Value) -> Padded:
        return self.padded.get(value, {})

    def array(self, value: Value) -> Value:
        return self.arrays.get(value, value)

    def sharding(self, value: Value) -> Sharding | None:
        """How a value lies: padded dimensions as they are, the others as the partitioner likes. Of a value
        without elements the partitioner says nothing, so they are whole."""
        dims, others = self.dims(value), None if value.type.numel else ()
        return Sharding(self.mesh, [dims.get(dim, others) for dim in range(value.rank)]) if dims else None

    def whole(self, value: Value) -> Value:
        """The value without padding: whole along the dimensions that had some."""
        dims = self.dims(value)
        if not dims:
            return self.array(value)
        if value not in self.wholes:
            array = self.array(value)
            for dim, axes in dims.items():
                array = _cut(array, dim, stretches(value.shape[dim], axes))
            self.wholes[value] = self._joined(array, dims)
        return self.wholes[value]

    def _joined(self, array: Value, dims: Padded) -> Value:
        """An array that no device splits along these dimensions."""
        return constrained(array, Sharding(self.mesh, [() if d in dims else None for d in range(array.rank)]))

    def like(self, value: Value, dims: Padded) -> Value:
        """The value with padding in these dimensions, and in no other."""
        if self.dims(value) == dims:
            return self.array(value)
        array = self.whole(value)
        shape = [self._extent(extent, dims.get(dim, ())) for dim, extent in enumerate(value.shape)]
        op = array.op
        if isinstance(op, m.BroadcastInDim):
            stretched = dict(zip(op.broadcast_dimensions, op.x.shape, strict=True))
            if all(stretched.get(dim, 1) == 1 < value.shape[dim] for dim in dims):
                return m.BroadcastInDim(op.x, tuple(shape), op.broadcast_dimensions).result
        array = self._joined(array, dims)
        for dim, axes in dims.items():
            array = _spread(array, dim, stretches(value.shape[dim], axes), shape[dim])
        return array

    def _extent(self, extent: int, axes: tuple[Axis, ...]) -> int:
        parts = math.prod([axis.size for axis in axes])
        return -(-extent // parts) * parts

    def masked(self, value: Value, array: Value, dims: Padded, filler: Any) -> Value:
        """An array that stands for a value, with a filler in the padding of these dimensions."""
        for dim, axes in dims.items():
            place = iota(array.shape, dim)
            inside = [_within(place, start, size) for start, _, size in stretches(value.shape[dim], axes)]
            array = where(functools.reduce(operator.or_, inside), array, filler)
        return array


def _part(array: Value, dim: int, start: int, size: int) -> Value:
    starts, limits = [0] * array.rank, list(array.shape)
    starts[dim], limits[dim] = start, start + size
    return slice(array, starts, limits)


def _cut(array: Value, dim: int, kept: Sequence[tuple[int, int, int]]) -> Value:
    """An array without the padding between these stretches of a dimension, and after them."""
    return concatenate([_part(array, dim, start, size) for start, _, size in kept], dim)


def _spread(array: Value, dim: int, kept: Sequence[tuple[int, int, int]], room: int) -> Value:
    """An array with padding between these stretches of a dimension, and after them."""
    ends = [start for start, _, _ in kept[1:]] + [room]
    parts = []
    for (start, own, size), end in zip(kept, ends, strict=True):
        rest = [0] * array.rank
        rest[dim] = end - start - size
        parts.append(pad(_part(array, dim, own, size), (0,) * array.rank, rest))
    return concatenate(parts, dim)


def _within(place: Value, start: int, size: int) -> Value:
    below = lt(place, start + size)
    return below if not start else ge(place, start) & below


# Rules: the arrays that stand for an op's results and their padded dimensions; None where padding is cut off

Outcome = tuple[Sequence[Value], Padded] | None


def _again(op: Op, operands: Sequence[Value]) -> Op:
    """The op on operands of other shapes."""
    rest = iter(operands)
    state = {field: op.__dict__[field] for field in op.fields}
    for field, many in op.operand_fields:
        state[field] = tuple([next(rest) for _ in state[field]]) if many else next(rest)
    return type(op)(*state.values())


def _alike(op: Op, p: Padding) -> tuple[list[Value], Padded]:
    """Operands of one shape with padding in the same dimensions; scalars as they are."""
    dims = next(p.dims(operand) for operand in op.operands if operand in p.padded)
    rank = op.operands[0].rank if isinstance(op, s.Reduce) else op.result.rank
    return [p.like(each, dims) if each.rank == rank else p.array(each) for each in op.operands], dims


def _elementwise(op: Op, p: Padding) -> Outcome:
    arrays, dims = _alike(op, p)
    return [_again(op, arrays).result], dims


def _check(op: s.Check, p: Padding) -> Outcome:
    return [s.Check(p.array(op.x), p.whole(op.holds), op.error, op.message).result], p.dims(op.x)


def _constraint(op: ShardingConstraint, p: Padding) -> Outcome:
    dims = _uneven(op.sharding, op.x.shape)
    array = p.like(op.x, dims) if dims else p.whole(op.x)
    return [ShardingConstraint(array, op.sharding, op.backward, op.reduces).result], dims


def _broadcast(op: m.BroadcastInDim, p: Padding) -> Outcome:
    array, dims = p.array(op.x), p.dims(op.x)
    shape, outcome = list(op.shape), {}
    for dim, axes in dims.items():
        place = op.broadcast_dimensions[dim]
        if op.x.shape[dim] != op.shape[place]:
            return None
        shape[place], outcome[place] = array.shape[dim], axes
    return [m.BroadcastInDim(array, tuple(shape), op.broadcast_dimensions).result], outcome


def _transpose(op: m.Transpose, p: Padding) -> Outcome:
    dims = p.dims(op.x)
    outcome = {place: dims[dim] for place, dim in enumerate(op.permutation) if dim in dims}
    return [transpose(p.array(op.x), op.permutation)], outcome


def _reshape(op: m.Reshape, p: Padding) -> Outcome:
    """Dimensions beside the padded ones may be split and joined."""
    array, shape, outcome = p.array(op.x), list(op.shape), {}
    if 0 in op.shape:
        return None
    for dim, axes in p.dims(op.x).items():
        before, extent = math.prod(op.x.shape[:dim]), op.x.shape[dim]
        places = [
            place
            for place in range(len(shape))
            if op.shape[place] == extent > 1 and math.prod(op.shape[:place]) == before
        ]
        if not places:
            return None
        shape[places[0]], outcome[places[0]] = array.shape[dim], axes
    return [reshape(array, shape)], outcome


def _reduce(op: s.Reduce, p: Padding) -> Outcome:
    arrays, dims = _alike(op, p)
    count = len(op.inputs)
    inits = arrays[count:]
    added = {dim: axes for dim, axes in dims.items() if dim in op.dimensions}
    masked = [
        p.masked(value, array, added, init)
        for value, array, init in zip(op.inputs, arrays, inits, strict=False)
    ]
    kept = [dim for dim in range(op.inputs[0].rank) if dim not in op.dimensions]
    outcome = {place: dims[dim] for place, dim in enumerate(kept) if dim in dims}
    return _again(op, [*masked, *inits]).results, outcome


def _product(op: s.DotGeneral, p: Padding) -> Outcome:
    x_batch, y_batch, x_added, y_added = op.dot_dimension_numbers
    x_dims, y_dims = dict(p.dims(op.x)), dict(p.dims(op.y))
    for i, j in (*zip(x_batch, y_batch, strict=True), *zip(x_added, y_added, strict=True)):
        axes = x_dims.get(i) or y_dims.get(j)
        if axes:
            x_dims[i] = y_dims[j] = axes
    used = {axis.name for axes in x_dims.values() for axis in axes}
    for dim, axes in list(y_dims.items()):  # an axis splits one dimension of a value
        if dim not in y_batch and dim not in y_added and any(axis.name in used for axis in axes):
            del y_dims[dim]
    if _repeats(x_dims) or _repeats(y_dims):
        return None
    x = p.masked(op.x, p.like(op.x, x_dims), {dim: x_dims[dim] for dim in x_added if dim in x_dims}, 0)
    y = p.masked(op.y, p.like(op.y, y_dims), {dim: y_dims[dim] for dim in y_added if dim in y_dims}, 0)
    x_free = [dim for dim in range(op.x.rank) if dim not in x_batch and dim not in x_added]
    y_free = [dim for dim in range(op.y.rank) if dim not in y_batch and dim not in y_added]
    lying = [x_dims.get(dim) for dim in (*x_batch, *x_free)] + [y_dims.get(dim) for dim in y_free]
    outcome = {place: axes for place, axes in enumerate(lying) if axes}
    return [s.DotGeneral(x, y, op.dot_dimension_numbers, op.dtype).result], outcome


def _repeats(dims: Padded) -> bool:
    names = [axis.name for axes in dims.values() for axis in axes]
    return len(set(names)) < len(names)


ELEMENTWISE = [
    member
    for member in vars(e).values()
    if isinstance(member, type) and issubclass(member, Op) and getattr(member, "name", None)
]

RULES: dict[type[Op], Callable[[Any, Padding], Outcome]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    s.Check: _check,
    ShardingConstraint: _constraint,
    m.BroadcastInDim: _broadcast,
    m.Transpose: _transpose,
    m.Reshape: _reshape,
    s.Reduce: _reduce,
    s.DotGeneral: _product,
}
for _differs in (e.BitcastConvert, e.OptimizationBarrier):
    del RULES[_differs]
