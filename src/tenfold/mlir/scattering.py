"""Reduce-scatters for CPUs. XLA for GPUs turns an all-reduce of which each device keeps a part into a
reduce-scatter; XLA for CPUs does not. So Shardy's propagation tells how each sum of a program is sharded, and
one over devices that split its result, too, is emitted as code for one device that ends in a reduce-scatter.
`emitter` is that of `stablehlo.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tenfold.base.meshes import Mesh, Partitioned, Sharding
from tenfold.flat.collectives import ManualComputation, ReduceScatter, all_reduce, groups_along
from tenfold.flat.data_ops import BroadcastInDim, Constant
from tenfold.flat.elementwise import Convert
from tenfold.flat.folding import monoid
from tenfold.flat.indexed import Scatter
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.flat.sharding import ShardingConstraint
from tenfold.flat.structured import DotGeneral, Reduce
from tenfold.mlir.collectives import EMITTERS
from tenfold.mlir.layouts import Axes, Layout, layouts_of


class Sum(NamedTuple):
    """How the dimensions of a sum relate, as einsum writes it: a letter for each dimension of each operand
    and of the result. `added` are the letters that the result does not have. The last operand of `op` may be
    the result of another sum, `first`, whose operands stand in its place."""

    op: Any
    operands: tuple[str, ...]
    result: str
    added: str
    first: Any = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self.op.operands if self.first is None else (*self.op.operands[:-1], *self.first.operands)

    def on(self, operands: Sequence[Value]) -> Value:
        """The sum of operands of other shapes."""
        if self.first is None:
            return _on(self.op, operands)
        own = len(self.op.operands) - 1
        return _on(self.op, [*operands[:own], _on(self.first, operands[own:])])


def scatter_sums(emitter: Any, module: Any, function: Function, place: Partitioned) -> None:
    """Turn sums over devices that split the result, too, into reduce-scatters, in place."""
    if place.mesh.platform != "cpu" or place.mesh.size == 1 or not any(map(_splits, function.ops)):
        return
    uses = Counter([*function.results, *[operand for op in function.ops for operand in op.operands]])
    sums = [form for op in function.ops for form in _forms(op, uses)]
    operations = {form.op: emitter.values[form.op.result].owner for form in sums}
    found = layouts_of(emitter, module, list(operations.values()))
    layouts = dict(zip(operations, found, strict=True))
    done: set[Op] = set()
    for form in reversed(sums):
        computation = None if form.op in done else _scattered(form, _joined(form, layouts), place.mesh)
        if computation is not None:
            operation = operations[form.op]
            with emitter.b.ir.InsertionPoint(operation):
                (result,) = EMITTERS[ManualComputation](emitter, computation)
            emitter.values[form.op.result] = result
            operation.results[0].replace_all_uses_with(result)
            operation.erase()
            done |= {form.op, form.first}


def _splits(op: Op) -> bool:
    """Whether a value is split over devices by its op, as a gradient is under `fully_shard`."""
    return isinstance(op, ShardingConstraint) and not op.sharding.is_replicated


# What is a sum


def _forms(op: Op, uses: Mapping[Value, int]) -> list[Sum]:
    """An op as a sum; and once more together with the sum that it alone reads, where one transfer for both
    sends no more."""
    if isinstance(op, DotGeneral):
        return [_product(op)]
    if isinstance(op, Reduce) and op.body is monoid("add", op.result.dtype) and _is_zero(op.inits[0]):
        return [_folded(op)]
    if isinstance(op, Scatter) and op.body is monoid("add", op.result.dtype) and _is_zero(op.inputs[0]):
        form, rows = _placed_sum(op), op.updates[0]
        if form is None:
            return []
        first = _forms(rows.op, uses) if isinstance(rows.op, Reduce) and uses[rows] == 1 else []
        is_small = op.result.type.numel <= 2 * rows.type.numel
        return [form, *[_after(each, form) for each in first if is_small]]
    return []


def _folded(op: Reduce) -> Sum:
    letters = _letters(op.inputs[0].rank)
    added = "".join([letters[dim] for dim in op.dimensions])
    kept = "".join([letter for letter in letters if letter not in added])
    return Sum(op, (letters, ""), kept, added)


def _after(first: Sum, form: Sum) -> Sum:
    """A sum of what another one gives, as one sum."""
    rename = dict(zip(first.result, form.operands[-1], strict=True))
    rename |= {letter: letter.upper() for letter in first.added}
    inner = tuple(["".join([rename[letter] for letter in letters]) for letters in first.operands])
    return Sum(
        form.op, (*form.operands[:-1], *inner), form.result, form.added + first.added.upper(), first.op
    )


def _joined(form: Sum, layouts: Mapping[Op, Layout | None]) -> Layout | None:
    """The layout of a sum's inputs and result."""
    own = layouts[form.op]
    if form.first is None or own is None:
        return own
    first = layouts[form.first]
    return None if first is None else Layout([*own.operands[:-1], *first.operands], own.result)


def _letters(count: int, start: int = 0) -> str:
    return "".join([chr(ord("a") + start + i) for i in range(count)])


def _product(op: DotGeneral) -> Sum:
    x_batch, y_batch, x_added, y_added = op.dot_dimension_numbers
    x, y = _letters(op.x.rank), list(_letters(op.y.rank, op.x.rank))
    for mine, theirs in (*zip(x_batch, y_batch, strict=True), *zip(x_added, y_added, strict=True)):
        y[theirs] = x[mine]
    batch, added = [x[dim] for dim in x_batch], [x[dim] for dim in x_added]
    free = [letter for letter in (*x, *y) if letter not in batch and letter not in added]
    return Sum(op, (x, "".join(y)), "".join([*batch, *free]), "".join(added))


def _placed_sum(op: Scatter) -> Sum | None:
    """Rows added up at computed places: the gradient of an embedding."""
    numbers, x, updates = op.scatter_dimension_numbers, op.inputs[0], op.updates[0]
    rank = op.scatter_indices.rank
    if numbers.input_batching_dims or numbers.index_vector_dim < rank - 1:
        return None
    result, places = _letters(x.rank), _letters(rank, x.rank)
    added = places[: numbers.index_vector_dim]
    rows, kept = list(added), [d for d in range(x.rank) if d not in numbers.inserted_window_dims]
    for dim, of in zip(numbers.update_window_dims, kept, strict=True):
        if updates.shape[dim] != x.shape[of]:
            return None
        rows.insert(dim, result[of])
    return Sum(op, (result, places, "".join(rows)), result, added)


def _is_zero(value: Value) -> bool:
    while isinstance(value.op, BroadcastInDim | Convert):
        value = value.op.x
    return isinstance(value.op, Constant) and not value.op.value.any()


# Code for one device


def _scattered(form: Sum, layout: Layout | None, mesh: Mesh) -> ManualComputation | None:
    """The sum as code for one device, where one of its dimensions lies on axes that split the result, too.
    Along axes that do not, the parts are then added up: the replicas of hybrid sharding."""
    if layout is None:
        return None
    lying = [
        (letter, axes)
        for letters, dims in zip(form.operands, layout.operands, strict=True)
        for letter, axes in zip(letters, dims, strict=True)
        if letter in form.added and axes
    ]
    if len(set(lying)) != 1:
        return None
    added, over = lying[0]
    ends = [_last_of(axes, over) for axes in layout.result]
    kept = max(ends, key=len, default=())
    rest = _without(over, kept)
    is_split = any(name in rest for axes in layout.result for name in axes)
    if not kept or is_split or list(kept) != [name for name, _ in mesh.axes if name in kept]:
        return None
    split = dict(zip(form.result, [_without(axes, over) for axes in layout.result], strict=True))
    split[added] = over
    into = [_sharding(mesh, [split.get(letter, ()) for letter in letters]) for letters in form.operands]
    out = _sharding(mesh, layout.result)
    pairs = [*zip(into, form.inputs, strict=True), (out, form.op.result)]
    if any(_remainder(placed, value) for placed, value in pairs):
        return None
    params = [Value(TensorType(x.dtype, placed.shard_shape(x.shape))) for placed, x in pairs[:-1]]
    part = ReduceScatter(form.on(params), ends.index(kept), groups_along(mesh.axes, kept)).result
    if rest:
        part = all_reduce(part, "add", groups_along(mesh.axes, rest))
    body = Function(params, [part], "reduce_scatter")
    computation = ManualComputation(form.inputs, body, tuple(into), (out,))
    computation.__dict__["source"] = form.op.source
    return computation


def _last_of(axes: Axes, over: Axes) -> Axes:
    """The innermost of the axes that split a dimension, as far as the sum goes over them."""
    start = len(axes)
    while start and axes[start - 1] in over:
        start -= 1
    return axes[start:]


def _without(axes: Axes, over: Axes) -> Axes:
    return tuple([name for name in axes if name not in over])


def _sharding(mesh: Mesh, dims: Sequence[Axes]) -> Sharding:
    return Sharding(mesh, [tuple([mesh.axis(name) for name in axes]) for axes in dims])


def _remainder(placed: Sharding, value: Value) -> bool:
    return any(extent % parts for extent, parts in zip(value.shape, placed.parts, strict=True))


def _on(op: Op, operands: Sequence[Value]) -> Value:
    """The op on operands of other shapes."""
    rest = iter(operands)
    fields = dict(op.operand_fields)
    state = [
        (tuple([next(rest) for _ in op.__dict__[field]]) if fields[field] else next(rest))
        if field in fields
        else op.__dict__[field]
        for field in op.fields
    ]
    return type(op)(*state).result
