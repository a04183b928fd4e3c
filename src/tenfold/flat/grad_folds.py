"""Gradient rules of ops that choose, place and fold elements: reductions, gathers, scatters, sorts.
Those of sliding windows are in `grad_windows.py`, and the table of all rules in `grad.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.errors import UnsupportedError
from tenfold.flat import (
    build as b,
    data_builders as mv,
    data_ops as m,
    elementwise as e,
    folding as f,
    structured as s,
)
from tenfold.flat.build import convert, eq, full, full_like, where
from tenfold.flat.indexed import Gather, GatherDimensions, Scatter, ScatterDimensions
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.partials import conj

Cotangents = Sequence[Value | None]


def wide(dtype: dtypes.DType) -> dtypes.DType:
    """The dtype in which many numbers of this one are summed."""
    return dtypes.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype


def total(x: Value, dims: Sequence[int]) -> Value:
    """The sum over these dimensions; over none it is x."""
    return convert(f.sum(convert(x, wide(x.dtype)), tuple(dims)), x.dtype) if dims else x


def spread(x: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
    """x again at every place along `dims`, which a reduction took away."""
    kept = tuple([d for d in range(len(shape)) if d not in dims])
    return m.BroadcastInDim(x, tuple(shape), kept).result


# Reductions


def reduce(cts: Cotangents, op: s.Reduce) -> list[Any]:
    if len(op.inputs) > 1:
        return _choice(cts, op)
    ct, kind = cts[0], op.body.name
    assert ct is not None
    if kind == "add":
        return [lambda: spread(ct, op.inputs[0].shape, op.dimensions), lambda: total(ct, range(ct.rank))]
    if kind in ("max", "min"):
        return [lambda: _shared(ct, op), lambda: _refuse_start(kind)]
    if kind == "mul":
        return [lambda: _product(ct, op), lambda: _refuse_start(kind)]
    raise UnsupportedError("a reduction by a function of its own has no gradient", help="detach its argument")


def _refuse_start(kind: str) -> Value:
    raise UnsupportedError(f"the start of a {kind} reduction has no gradient", help="make it a constant")


def _shared(ct: Value, op: s.Reduce) -> Value:
    """Equal parts to all elements that are the extreme; NaN to all where it is NaN, as in PyTorch."""
    (x,), dims = op.inputs, op.dimensions
    extreme = eq(x, spread(op.result, x.shape, dims))
    count = total(where(extreme, full_like(x, 1), 0), dims)
    return where(extreme, spread(ct, x.shape, dims), 0) / spread(count, x.shape, dims)


def _product(ct: Value, op: s.Reduce) -> Value:
    """The product of all the others: no division, so zeros are right, and so are second derivatives."""
    (x,), dims = op.inputs, op.dimensions
    order = [*[d for d in range(x.rank) if d not in dims], *dims]
    moved = mv.transpose(x, order)
    kept = moved.shape[: x.rank - len(dims)]
    count = int(np.prod(moved.shape[len(kept) :]))
    line = mv.reshape(moved, (*kept, count))
    others = _before(line) * mv.reverse(_before(mv.reverse(line, (len(kept),))), (len(kept),))
    others = mv.transpose(mv.reshape(others, moved.shape), [order.index(d) for d in range(x.rank)])
    return spread(ct * conj(spread(op.inits[0], ct.shape, range(ct.rank))), x.shape, dims) * conj(others)


def _before(x: Value) -> Value:
    """For each element of the last dimension the product of those before it, in log(n) steps."""
    product, shift = _shifted(x, 1), 1
    while shift < x.shape[-1]:
        product = product * _shifted(product, shift)
        shift *= 2
    return product


def _shifted(x: Value, by: int) -> Value:
    """x moved along the last dimension, with ones moved in."""
    none = [0] * (x.rank - 1)
    by = min(by, x.shape[-1])
    return mv.pad(x, [*none, by], [*none, -by], 1)


def _choice(cts: Cotangents, op: s.Reduce) -> list[Any]:
    """A reduction that carries an element of each input along, with its place: the cotangent goes there."""
    place = next((i for i, x in enumerate(op.inputs) if _counts(x, op.dimensions)), None)
    if place is None or not _only_chooses(op.body):
        raise UnsupportedError(
            "a reduction of several tensors has a gradient only where it chooses between elements and one "
            "of the tensors counts their places",
            help="detach its arguments",
        )
    shape = op.inputs[0].shape

    def at_place(ct: Value | None) -> Value | None:
        if ct is None:
            return None
        chosen = eq(op.inputs[place], spread(op.results[place], shape, op.dimensions))
        return where(chosen, spread(ct, shape, op.dimensions), 0)

    return [lambda ct=ct: at_place(ct) for ct in cts] + [lambda: _refuse_start("choosing") for _ in op.inits]


def _counts(x: Value, dims: Sequence[int]) -> bool:
    """Whether x tells elements along `dims` apart."""
    op = x.op
    if isinstance(op, m.Reshape) and isinstance(op.x.op, m.Iota):
        return x.dtype.kind == "int" and op.x.rank == 1
    return isinstance(op, m.Iota) and x.dtype.kind == "int" and tuple(dims) == (op.iota_dimension,)


def _only_chooses(body: Function) -> bool:
    """Whether each result is the accumulator or the element of its own input."""
    count = len(body.results)
    for i, result in enumerate(body.results):
        pending = [result]
        while pending:
            value = pending.pop()
            if isinstance(value.op, e.Select):
                pending += [value.op.on_true, value.op.on_false]
            elif isinstance(value.op, (e.Maximum, e.Minimum)):
                pending += [value.op.x, value.op.y]
            elif value is not body.params[i] and value is not body.params[i + count]:
                return False
    return True


# Gather and scatter


def gather(ct: Value, op: Gather) -> tuple[Any, None]:
    """Add each slice where it was read, which is inside: gather moves places that overhang."""

    def back() -> Value:
        if 0 in ct.shape:
            return full_like(op.x, 0)
        inside = _moved_inside(op.start_indices, op.dimension_numbers, op.x.shape, op.slice_sizes)
        return scattered(full_like(op.x, 0), inside, ct, ScatterDimensions(*op.dimension_numbers))

    return back, None


def scattered(x: Value, places: Value, updates: Value, numbers: ScatterDimensions) -> Value:
    """x with the updates added, in the dtype in which many are summed."""
    dtype = wide(x.dtype)
    return convert(f.scatter(convert(x, dtype), places, convert(updates, dtype), numbers, "add"), x.dtype)


def _limits(
    indices: Value, numbers: GatherDimensions | ScatterDimensions, shape: Sequence[int], sizes: Sequence[int]
) -> Value:
    """The last place at which a slice fits, for each component of the indices."""
    most = int(np.iinfo(indices.dtype.numpy).max)
    last = [min(shape[d] - sizes[d], most) for d in numbers[2]]
    if numbers.index_vector_dim == indices.rank:
        return full_like(indices, last[0])
    values = b.constant(np.asarray(last), indices.dtype)
    return m.BroadcastInDim(values, indices.shape, (numbers.index_vector_dim,)).result


def _moved_inside(
    indices: Value, numbers: GatherDimensions, shape: Sequence[int], sizes: Sequence[int]
) -> Value:
    return b.clamp(indices, 0, _limits(indices, numbers, shape, sizes)) if indices.numel else indices


def scatter(cts: Cotangents, op: Scatter) -> list[Any]:
    ct, kind = cts[0], op.body.name
    if len(op.inputs) > 1 or kind not in _SCATTERS:
        raise UnsupportedError(
            "a scatter by a function of its own has no gradient", help="detach its arguments"
        )
    by_input, by_update = _SCATTERS[kind]
    return [lambda: by_input(ct, op), None, lambda: by_update(ct, op)]


def _read_back(x: Value, op: Scatter) -> Value:
    """What x holds where the updates went; 0 for those that lay outside and were left out."""
    numbers, places, (update,) = op.scatter_dimension_numbers, op.scatter_indices, op.updates
    if not update.numel:
        return full(update.shape, 0, x.dtype)
    windows = iter(numbers.update_window_dims)
    dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    sizes = [1 if d in dropped else update.shape[next(windows)] for d in range(x.rank)]
    read = mv.gather(x, places, GatherDimensions(*numbers), sizes)
    if not places.numel:
        return read
    inside = (places >= 0) & (places <= _limits(places, numbers, x.shape, sizes))
    if numbers.index_vector_dim < places.rank:
        inside = f.reduce(inside, "and", numbers.index_vector_dim)
    around = tuple([d for d in range(update.rank) if d not in numbers.update_window_dims])
    return where(m.BroadcastInDim(inside, update.shape, around).result, read, 0)


def _again(op: Scatter, x: Value, updates: Value, kind: str) -> Value:
    """Another scatter to the same places."""
    return f.scatter(x, op.scatter_indices, updates, op.scatter_dimension_numbers, kind)


def _others_product(ct: Value, op: Scatter) -> Value:
    """Of an update that is multiplied in: the product of the rest at its place, right also with zeros."""
    (x,), (update,) = op.inputs, op.updates
    zero = eq(update, 0)
    rest = _again(op, x, where(zero, 1, update), "mul")
    zeros = _again(op, full_like(x, 0), where(zero, full_like(update, 1), 0), "add")
    alone = zero & eq(_read_back(zeros, op), 1)
    over = _read_back(ct * conj(op.result), op) / conj(where(zero, 1, update))
    return where(zero, where(alone, _read_back(ct * conj(rest), op), 0), over)


def _parts(ct: Value, op: Scatter) -> Value:
    """ct divided by how many elements are the extreme, x's own among them."""
    (x,), (update,) = op.inputs, op.updates
    reaching = where(eq(update, _read_back(op.result, op)), full_like(update, 1), 0)
    own = where(eq(x, op.result), full_like(x, 1), 0)
    return ct / _again(op, own, reaching, "add")


def _extreme_input(ct: Value, op: Scatter) -> Value:
    return where(eq(op.inputs[0], op.result), _parts(ct, op), 0)


def _extreme_update(ct: Value, op: Scatter) -> Value:
    reaching = eq(op.updates[0], _read_back(op.result, op))
    return where(reaching, _read_back(_parts(ct, op), op), 0)


_SCATTERS: dict[str, tuple[Any, Any]] = {
    "add": (lambda ct, op: ct, _read_back),
    "set": (lambda ct, op: _again(op, ct, full_like(op.updates[0], 0), "set"), _read_back),
    "mul": (
        lambda ct, op: ct * conj(_again(op, full_like(ct, 1), op.updates[0], "mul")),
        _others_product,
    ),
    "max": (_extreme_input, _extreme_update),
    "min": (_extreme_input, _extreme_update),
}


# Sorting


def sort(cts: Cotangents, op: s.Sort) -> list[Any]:
    def back(ct: Value | None) -> Value | None:
        return None if ct is None else put_along(ct, permutation(op), op.dimension, ct.shape)

    return [lambda ct=ct: back(ct) for ct in cts]


def permutation(op: s.Sort) -> Value:
    """Where each sorted element came from: an input that counts tells, or else one more sort that has it."""
    for value, result in zip(op.inputs, op.results):
        if _counts(value, (op.dimension,)) and isinstance(value.op, m.Iota):
            return result
    places = b.iota(op.inputs[0].shape, op.dimension)
    scalar = TensorType(places.dtype, ())
    compare = Function([*op.comparator.params, Value(scalar), Value(scalar)], op.comparator.results)
    return s.Sort((*op.inputs, places), op.dimension, op.is_stable, compare).results[-1]


def put_along(x: Value, indices: Value, dim: int, shape: Sequence[int]) -> Value:
    """Zeros of this shape, with x[i][j] at [i][indices[i][j]]: no place is named twice."""
    zeros = full(shape, 0, x.dtype)
    if not x.numel:
        return zeros
    starts = mv.concatenate([mv.unsqueeze(each, x.rank) for each in mv.grid(indices, dim)], x.rank)
    everywhere = tuple(range(x.rank))
    numbers = ScatterDimensions((), everywhere, everywhere, x.rank)
    return Scatter((zeros,), starts, (x,), numbers, False, True, f.monoid("add", x.dtype)).result


def top_k(cts: Cotangents, op: s.TopK) -> tuple[Value | None]:
    ct = cts[0]
    return (None if ct is None else put_along(ct, op.results[1], op.x.rank - 1, op.x.shape),)
