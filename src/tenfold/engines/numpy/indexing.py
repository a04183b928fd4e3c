"""Kernels at computed places: gather, scatter, and the gradient of a max-pool.

Both put the dimensions of the operand that are indexed first, and those that windows span whole after them:
then a place is a row, and a window is some rows.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tenfold.engines.numpy.bodies import replaces, ufunc, vectorised
from tenfold.engines.numpy.kernels import Array, Kernel
from tenfold.flat.ir import Function


class Places:
    """The rows that each window of a gather or scatter begins at. Made from the dimension numbers.

    `indexed` are the dimensions of the operand that places or parts of windows choose from, `whole` the
    others. `apart` permutes the dimensions of the result (or the updates) to those of the indices, the
    windows' own in `indexed`, and `whole`.
    """

    def __init__(self, shape: tuple[int, ...], indices: Any, numbers: Any, sizes: tuple[int, ...], rank: int):
        window_dims, dropped, index_map, vector_dim, batching, index_batching = numbers
        kept = [d for d in range(len(shape)) if d not in dropped and d not in batching]
        place = dict(zip(kept, window_dims, strict=True))  # in the result
        self.whole = [d for d in kept if d not in index_map and sizes[d] == shape[d]]
        self.indexed = [d for d in range(len(shape)) if d not in self.whole]
        inside = [d for d in self.indexed if d in kept]
        around = [d for d in range(rank) if d not in window_dims]
        self.apart = [*around, *[place[d] for d in inside], *[place[d] for d in self.whole]]
        self.sizes, self.shape = sizes, shape
        self.index_map, self.vector_dim = index_map, vector_dim
        self.lead = len(around)
        self.inner = len(inside)
        self.inside = {d: i for i, d in enumerate(inside)}
        self.batching = {}
        for d, index_dim in zip(batching, index_batching, strict=True):
            self.batching[d] = index_dim - (index_dim > vector_dim)
        self.rank_of_indices = len(indices.shape)

    def starts(self, indices: Array) -> list[Array]:
        """The components of each index, without the dimension that holds them."""
        if self.vector_dim == self.rank_of_indices:
            return [indices.astype(np.int64)]
        moved = np.moveaxis(indices, self.vector_dim, 0)
        # An unsigned index above int64's largest lies outside in any case.
        if moved.dtype == np.uint64:
            moved = np.minimum(moved, np.uint64(np.iinfo(np.int64).max))
        return list(moved.astype(np.int64))

    def rows(self, starts: list[Array], around: tuple[int, ...]) -> list[Array]:
        """For each of the indexed dimensions, the places along it: arrays that broadcast together."""
        known = dict(zip(self.index_map, starts, strict=True))
        found = []
        for d in self.indexed:
            rows = np.zeros((1,) * (self.lead + self.inner), np.int64)
            if d in known:
                rows = rows + known[d].reshape((*around, *[1] * self.inner))
            if d in self.batching:
                rows = rows + _along(self.batching[d], self.lead + self.inner, around[self.batching[d]])
            if d in self.inside:
                rows = rows + _along(self.lead + self.inside[d], self.lead + self.inner, self.sizes[d])
            found.append(rows)
        return found


def _along(axis: int, rank: int, extent: int) -> Array:
    shape = [1] * rank
    shape[axis] = extent
    return np.arange(extent).reshape(shape)


def gather(op: Any) -> Kernel:
    shape, result = op.x.shape, op.result.shape
    places = Places(shape, op.start_indices, op.dimension_numbers, op.slice_sizes, len(result))
    limits = [shape[d] - op.slice_sizes[d] for d in places.index_map]
    if not op.result.numel:
        return lambda x, indices: np.empty(result, x.dtype)
    order = [*places.indexed, *places.whole]
    back = np.argsort(places.apart)
    spread = tuple([result[d] for d in places.apart])
    around = spread[: places.lead]
    simple = len(places.indexed) == 1 and not places.inner and not places.batching

    def kernel(x: Array, indices: Array) -> Array:
        starts = [
            np.clip(start, 0, limit) for start, limit in zip(places.starts(indices), limits, strict=True)
        ]
        x = x.transpose(order)
        if simple and starts:
            taken = x.take(starts[0].reshape(around), 0)
        else:
            taken = np.broadcast_to(x[tuple(places.rows(starts, around))], spread)
        return taken.transpose(back)

    return kernel


def scatter(op: Any) -> Kernel:
    """Updates are combined one after the other where places meet. A window that overhangs is left out."""
    first, count, numbers = op.inputs[0], len(op.inputs), op.scatter_dimension_numbers
    shape, updates = first.shape, op.updates[0]
    sizes = _window_sizes(shape, numbers, updates.shape)
    places = Places(shape, op.scatter_indices, numbers, sizes, updates.rank)
    limits = [shape[d] - sizes[d] for d in places.index_map]
    order = [*places.indexed, *places.whole]
    back = np.argsort(order)
    moved = tuple([shape[d] for d in order])
    extents = [shape[d] for d in places.indexed]
    spread = tuple([updates.shape[d] for d in places.apart])
    around, rows_shape = spread[: places.lead], spread[: places.lead + places.inner]
    width = int(np.prod([shape[d] for d in places.whole], dtype=np.int64))
    combine = into(op.body, op.unique_indices)
    empty = not updates.numel or not first.numel

    def kernel(*operands: Array) -> Any:
        inputs, indices, news = operands[:count], operands[count], operands[count + 1 :]
        if empty:
            return inputs if count > 1 else inputs[0]
        starts = places.starts(indices)
        inside = np.ones(around, bool)
        for start, limit in zip(starts, limits, strict=True):
            inside &= ((start >= 0) & (start <= limit)).reshape(around)
        starts = [np.clip(start, 0, limit) for start, limit in zip(starts, limits, strict=True)]
        rows = places.rows(starts, around)
        flat = np.zeros((), np.int64)
        for row, extent in zip(rows, extents, strict=True):
            flat = flat * extent + row
        flat = np.broadcast_to(flat, rows_shape)
        chosen = np.broadcast_to(inside.reshape((*around, *[1] * places.inner)), rows_shape).ravel()
        flat = flat.ravel()[chosen]
        at = (flat[:, None] * width + np.arange(width)).ravel() if width != 1 else flat
        targets = [operand.transpose(order).reshape(-1) for operand in inputs]
        targets = [
            target.copy() if np.may_share_memory(target, x) else target
            for target, x in zip(targets, inputs, strict=True)
        ]
        values = [each.transpose(places.apart).reshape(len(chosen), width)[chosen].ravel() for each in news]
        combine(targets, at, values)
        results = tuple([target.reshape(moved).transpose(back) for target in targets])
        return results if count > 1 else results[0]

    return kernel


def _window_sizes(shape: tuple[int, ...], numbers: Any, updates: tuple[int, ...]) -> tuple[int, ...]:
    sizes = [1] * len(shape)
    kept = [
        d
        for d in range(len(shape))
        if d not in numbers.inserted_window_dims and d not in numbers.input_batching_dims
    ]
    for d, place in zip(kept, numbers.update_window_dims, strict=True):
        sizes[d] = updates[place]
    return tuple(sizes)


def into(body: Function, unique: bool = False) -> Kernel:
    """What combines values into vectors, which it changes, at places that may repeat, in their order."""
    if replaces(body):

        def put(targets: list[Array], at: Array, values: list[Array]) -> None:
            for target, value in zip(targets, values, strict=True):
                target[at] = value

        return put
    found, whole = ufunc(body), vectorised(body)
    narrow = any(param.dtype.is_floating_point and param.dtype.itemsize < 4 for param in body.params)

    def fold(targets: list[Array], at: Array, values: list[Array]) -> None:
        if found is not None and not narrow and not unique:
            found.at(targets[0], at, values[0])
            return
        for chosen in [slice(None)] if unique else _rounds(at):
            here = at[chosen]
            news = [value[chosen] for value in values]
            for target, new in zip(targets, whole(*[each[here] for each in targets], *news), strict=True):
                target[here] = new

    return fold


def _rounds(at: Array) -> list[Array]:
    """Which updates to combine together: in the n-th round all that are the n-th at their place."""
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(at) else np.zeros(0, bool)
    begin = np.maximum.accumulate(np.where(first, np.arange(len(at)), 0))
    turn = np.arange(len(at)) - begin
    return [order[turn == i] for i in range(int(turn.max()) + 1)] if len(at) else []


def select_and_scatter(op: Any) -> Kernel:
    """Goes through the places of a window, in order, and remembers of each window where the chosen one is."""
    shape, windows = op.x.shape, op.source_.shape
    select, combine = vectorised(op.select), into(op.scatter)
    lows = [low for low, _ in op.padding]
    numbers = np.arange(op.x.numel).reshape(shape)

    def kernel(x: Array, source: Array, init: Array) -> Array:
        best = np.zeros(windows, x.dtype)
        chosen = np.full(windows, -1, np.int64)
        for tap in itertools.product(*map(range, op.window_dimensions)):
            ranges = [
                np.arange(count) * stride + t - low
                for count, stride, t, low in zip(windows, op.window_strides, tap, lows, strict=True)
            ]
            here = np.ix_(*[np.clip(each, 0, extent - 1) for each, extent in zip(ranges, shape, strict=True)])
            inside = np.ones(windows, bool)
            for axis, (each, extent) in enumerate(zip(ranges, shape, strict=True)):
                along = [-1 if i == axis else 1 for i in range(len(shape))]
                inside &= ((each >= 0) & (each < extent)).reshape(along)
            value = x[here]
            keeps = (chosen >= 0) & select(best, value)[0]
            takes = inside & ~keeps
            best, chosen = np.where(takes, value, best), np.where(takes, numbers[here], chosen)
        result = np.full(x.size, init, x.dtype)
        found = chosen.ravel() >= 0
        combine([result], chosen.ravel()[found], [source.ravel()[found]])
        return result.reshape(shape)

    return kernel
