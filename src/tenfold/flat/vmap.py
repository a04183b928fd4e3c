"""Batching: a function of tensors made into one of stacks of tensors, by a table with one rule per FlatIR op.

The batch is dimension 0 of every value that has it; such a value has one dimension more than the one it
stands for, and by that it is known. A rule takes an op of the function and a `Batch`, which tells what has
become of its operands, and gives the op that does the same for the whole batch, or its results. A result in
which the elements of a batch cannot differ may be left without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.base.errors import UnsupportedError
from tenfold.flat import (
    collectives as c,
    data_ops as m,
    elementwise as e,
    structured as s,
    vmap_control as control,
    vmap_rules as rules,
    windows as w,
)
from tenfold.flat.build import axis
from tenfold.flat.composite import Composite
from tenfold.flat.data_builders import move
from tenfold.flat.folding import check
from tenfold.flat.indexed import Gather, Scatter
from tenfold.flat.ir import Function, Op, TensorType, Value, give_source
from tenfold.flat.sharding import ShardingConstraint, with_batch
from tenfold.flat.vmap_rules import CUSTOM_BATCHING, Batch, BatchRule, up

__all__ = ["BATCHING", "CUSTOM_BATCHING", "Batch", "batched"]


def batched(function: Function, size: int, dims: Sequence[int | None]) -> tuple[Function, list[bool]]:
    """The function that does the same for each of `size` elements of a batch, and which results are stacked.

    `dims` has a number for each parameter: which dimension of the new parameter counts the batch, or None for
    one that all elements share. Stacked results count the batch in dimension 0.
    """
    return _batched(function, size, dims)


def _batched(
    function: Function, size: int, dims: Sequence[int | None], stacked: Sequence[bool] | None = None
) -> tuple[Function, list[bool]]:
    """As `batched`; results that `stacked` names are stacked even where the elements cannot differ."""
    params: list[Value] = []
    batch = Batch(size, _batched)
    for param, dim in zip(function.params, dims, strict=True):
        widened = type(param)(param.type) if dim is None else Value(_with_batch(param.type, size, dim))
        widened.name = param.name
        params.append(widened)
        batch.values[param] = widened if dim is None else move(widened, dim, 0)
    ops: set[Op] = set()
    for op in function.ops:
        if any(batch.has(operand) for operand in op.operands):
            results = _apply(op, batch)
            give_source(results, op.source, ops)
        else:
            copy = op.replace(batch.values)
            ops.add(copy)
            results = copy.results
        batch.values.update(zip(op.results, results, strict=True))
    wanted = stacked or [False] * len(function.results)
    pairs = zip(function.results, wanted, strict=True)
    results = [batch(each) if want else batch.at(each) for each, want in pairs]
    return Function(params, results, function.name), [
        new.rank > old.rank for new, old in zip(results, function.results, strict=True)
    ]


def _with_batch(type: TensorType, size: int, dim: int) -> TensorType:
    dim = axis(dim, type.rank + 1)
    return TensorType(type.dtype, (*type.shape[:dim], size, *type.shape[dim:]))


def _apply(op: Op, batch: Batch) -> Sequence[Value]:
    rule = BATCHING.get(type(op))
    if rule is None:
        raise UnsupportedError(
            f"vmap: there is no rule for {op.name}", help="apply the function to the elements one by one"
        )
    results = rule(op, batch)
    return results.results if isinstance(results, Op) else results


ELEMENTWISE = [
    member
    for member in vars(e).values()
    if isinstance(member, type) and issubclass(member, Op) and member.name
]

# Constants and iotas have no operands, so nothing of theirs is ever batched.
BATCHING: dict[type[Op], BatchRule] = {
    **{each: lambda op, b: b.again(op) for each in ELEMENTWISE},
    e.OptimizationBarrier: lambda op, b: e.OptimizationBarrier(b.all_at(op.operands)),
    m.BroadcastInDim: lambda op, b: b.again(
        op, shape=(b.size, *op.shape), broadcast_dimensions=(0, *up(op.broadcast_dimensions))
    ),
    m.Reshape: lambda op, b: b.again(op, shape=(b.size, *op.shape)),
    m.Transpose: lambda op, b: b.again(op, permutation=(0, *up(op.permutation))),
    m.Slice: lambda op, b: b.again(
        op,
        start_indices=(0, *op.start_indices),
        limit_indices=(b.size, *op.limit_indices),
        strides=(1, *op.strides),
    ),
    m.DynamicSlice: rules.dynamic_slice_rule,
    m.DynamicUpdateSlice: rules.dynamic_update_slice_rule,
    m.Concatenate: lambda op, b: b.again(op, dimension=op.dimension + 1),
    m.Pad: rules.pad_rule,
    m.Reverse: lambda op, b: b.again(op, dimensions=up(op.dimensions)),
    Gather: rules.gather_rule,
    Scatter: rules.scatter_rule,
    s.DotGeneral: rules.dot_general_rule,
    w.Convolution: rules.convolution_rule,
    s.Reduce: rules.reduce_rule,
    w.ReduceWindow: rules.reduce_window_rule,
    w.SelectAndScatter: rules.select_and_scatter_rule,
    s.Sort: lambda op, b: b.again(op, dimension=op.dimension + 1),
    s.TopK: lambda op, b: b.again(op),
    s.Fft: lambda op, b: b.again(op),
    s.Cholesky: lambda op, b: b.again(op),
    s.TriangularSolve: lambda op, b: b.again(op),
    s.While: control.while_rule,
    s.Case: control.case_rule,
    Composite: control.composite_rule,
    s.RngBitGenerator: rules.one_by_one,
    s.CustomCall: rules.custom_call_rule,
    ShardingConstraint: lambda op, b: b.again(
        op, sharding=with_batch(op.sharding), backward=with_batch(op.backward)
    ),
    c.AllReduce: lambda op, b: b.again(op),
    c.AllGather: lambda op, b: b.again(op, all_gather_dim=op.all_gather_dim + 1),
    c.ReduceScatter: lambda op, b: b.again(op, scatter_dimension=op.scatter_dimension + 1),
    c.AllToAll: lambda op, b: b.again(
        op, split_dimension=op.split_dimension + 1, concat_dimension=op.concat_dimension + 1
    ),
    c.CollectivePermute: lambda op, b: b.again(op),
    c.ManualComputation: control.manual_rule,
    s.Check: lambda op, b: [check(b.at(op.x), b.at(op.holds), op.error, op.message)],
}
