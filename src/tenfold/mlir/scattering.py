"""Reduce-scatters for CPUs. XLA for GPUs turns an all-reduce of which each device keeps a part into a
reduce-scatter; XLA for CPUs does not. So Shardy's propagation tells how each sum of a program is sharded, and
one over devices that split its result, too, is emitted as code for one device that ends in a reduce-scatter.
`emitter` is that of `stablehlo.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tenfold.base.meshes import Mesh, Partitioned, Sharding
from tenfold.base.warning import warn
from tenfold.flat.collectives import ManualComputation, ReduceScatter, groups_along
from tenfold.flat.data_ops import BroadcastInDim, Constant
from tenfold.flat.elementwise import Convert
from tenfold.flat.folding import monoid
from tenfold.flat.indexed import Scatter
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.flat.sharding import ShardingConstraint
from tenfold.flat.structured import DotGeneral, Reduce
from tenfold.mlir.collectives import EMITTERS

MARK = "tenfold.sum"
PROPAGATION = "builtin.module(sdy-propagation-pipeline)"
Axes = tuple[str, ...]  # the names of the axes that split a dimension, the outermost first


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


class Layout(NamedTuple):
    """How the operands and the result of an op are sharded."""

    operands: list[list[Axes]]
    result: list[Axes]


def scatter_sums(emitter: Any, module: Any, function: Function, place: Partitioned) -> None:
    """Turn sums over devices that split the result, too, into reduce-scatters, in place."""
    if place.mesh.platform != "cpu" or place.mesh.size == 1 or not any(map(_splits, function.ops)):
        return
    propagation = _propagation(emitter.b)
    if propagation is None:
        return
    uses = Counter([*function.results, *[operand for op in function.ops for operand in op.operands]])
    sums = [form for op in function.ops for form in _forms(op, uses)]
    operations = {form.op: emitter.values[form.op.result].owner for form in sums}
    found = _layouts(emitter, module, list(operations.values()), propagation)
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


# How Shardy shards it


def _propagation(b: Any) -> Any:
    """Shardy's own pipeline of passes; None where jaxlib has none of that name."""
    try:
        return b.passmanager.PassManager.parse(PROPAGATION)
    except ValueError:
        warn("jaxlib has no pass that tells shardings: gradients are all-reduced, which sends more bytes")
        return None


def _layouts(emitter: Any, module: Any, operations: Sequence[Any], propagation: Any) -> list[Layout | None]:
    """How Shardy shards these operations of a module; None where it splits an axis."""
    ir = emitter.b.ir
    number = ir.IntegerType.get_signless(64)
    for i, operation in enumerate(operations):
        operation.attributes[MARK] = ir.IntegerAttr.get(number, i)
    copy = module.operation.clone()
    for operation in operations:
        del operation.attributes[MARK]
    propagation.run(copy)
    layouts: list[Layout | None] = [None] * len(operations)

    def look(operation: Any) -> Any:
        if MARK in operation.attributes:
            number = ir.IntegerAttr(operation.attributes[MARK]).value
            layouts[number] = _layout(emitter, operation)
        return ir.WalkResult.ADVANCE

    copy.walk(look)
    return layouts


def _layout(emitter: Any, operation: Any) -> Layout | None:
    values = [*operation.operands, operation.results[0]]
    axes = [_axes(emitter, each) for each in values]
    known = [each for each in axes if each is not None]
    return Layout(known[:-1], known[-1]) if len(known) == len(axes) else None


def _axes(emitter: Any, value: Any) -> list[Axes] | None:
    """The axes that split each dimension of a value; None where one is split itself."""
    ir, sdy = emitter.b.ir, emitter.b.sdy
    rank, sharding = ir.ShapedType(value.type).rank, None
    owner = value.owner
    if isinstance(owner, ir.Block):
        function = owner.owner
        if "arg_attrs" in function.attributes:
            said = function.attributes["arg_attrs"][ir.BlockArgument(value).arg_number]
            if "sdy.sharding" in said:
                sharding = said["sdy.sharding"]
    elif "sdy.sharding" in owner.attributes:
        place = ir.OpResult(value).result_number
        sharding = sdy.TensorShardingPerValueAttr(owner.attributes["sdy.sharding"]).shardings[place]
    if sharding is None:
        return [()] * rank
    axes: list[Axes] = []
    for dimension in sdy.TensorShardingAttr(sharding).dimension_shardings:
        references = [sdy.AxisRefAttr(axis) for axis in sdy.DimensionShardingAttr(dimension).axes]
        if any(axis.sub_axis_info is not None for axis in references):
            return None
        axes.append(tuple([axis.name for axis in references]))
    return axes


# Code for one device


def _scattered(form: Sum, layout: Layout | None, mesh: Mesh) -> ManualComputation | None:
    """The sum as code for one device, where one of its dimensions lies on axes that split the result, too."""
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
    names = [name for name, _ in mesh.axes]
    scattered = [dim for dim, axes in enumerate(layout.result) if axes[-len(over) :] == over]
    if not scattered or list(over) != [name for name in names if name in over]:
        return None
    split = dict(zip(form.result, [_without(axes, over) for axes in layout.result], strict=True))
    split[added] = over
    into = [_sharding(mesh, [split.get(letter, ()) for letter in letters]) for letters in form.operands]
    out = _sharding(mesh, layout.result)
    pairs = [*zip(into, form.inputs, strict=True), (out, form.op.result)]
    if any(_remainder(placed, value) for placed, value in pairs):
        return None
    params = [Value(TensorType(x.dtype, placed.shard_shape(x.shape))) for placed, x in pairs[:-1]]
    part = form.on(params)
    groups = groups_along(mesh.axes, over)
    body = Function(params, [ReduceScatter(part, scattered[0], groups).result], "reduce_scatter")
    computation = ManualComputation(form.inputs, body, tuple(into), (out,))
    computation.__dict__["source"] = form.op.source
    return computation


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
