"""Reverse mode: `gradients` walks ops backwards, with one rule for each FlatIR op: `GRADIENTS`.

A rule `(ct, op)` gives a cotangent for each operand of the op: a value, None for none, or a function that
makes one, called only where it is wanted. `ct` is the result's cotangent; for ops of several results
(`SEVERAL`) it is a tuple, with None for a result that has none. Elementwise rules follow from `partials.py`;
the long rules are in the files named `grad_...`.

Only floats and complex numbers have cotangents. Of a real loss L the gradient by z is dL/d re + i dL/d im.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, ShapeError, UnsupportedError
from tenfold.flat import (
    build as b,
    collectives as c,
    data_builders as mv,
    data_ops as m,
    elementwise as e,
    grad_control,
    grad_convolution,
    grad_folds,
    grad_products,
    grad_windows,
    structured as s,
)
from tenfold.flat.build import convert, full, full_like, where
from tenfold.flat.composite import Composite
from tenfold.flat.grad_folds import total
from tenfold.flat.indexed import Gather, Scatter
from tenfold.flat.ir import Op, Value
from tenfold.flat.partials import FLAT, PARTIALS, Map, carries, conj, pulled_back, reached
from tenfold.flat.sharding import ShardingConstraint, pulled_back as resharded
from tenfold.flat.windows import Convolution, ReduceWindow, SelectAndScatter

Rule = Callable[[Any, Any], Sequence[Any]]


def gradients(
    ops: Sequence[Op], results: Sequence[Value], cotangents: Sequence[Value | None], wrt: Sequence[Value]
) -> list[Value | None]:
    """The cotangent of each value in `wrt`, given those of `results`; None where no path leads.

    Only `ops`, operands before users, are differentiated: whatever else a value hangs on is constant.
    """
    live, on_path = reached(ops, wrt)
    found: dict[Value, Value] = {}
    for value, ct in zip(results, cotangents, strict=True):
        if ct is not None and carries(value):
            found[value] = found[value] + ct if value in found else ct
    known: set[Op | None] = set()
    if any(op.source is not None for op in live):
        known.update(each.op for op in live for each in (*op.operands, *op.results))
        known.update(live, [ct.op for ct in found.values()])
    for op in reversed(live):
        cts = tuple([found.get(result) for result in op.results])
        if all(each is None for each in cts):
            continue
        made = _pulled_back(op, cts, on_path)
        for operand, ct in made:
            before = found.get(operand)
            found[operand] = ct if before is None else before + ct
        if op.source is not None:
            _place([found[operand] for operand, _ in made], op.source, known)
        if known:
            known.update(found[operand].op for operand, _ in made)
    return [found.get(each) for each in wrt]


def _pulled_back(op: Op, cts: tuple[Value | None, ...], on_path: set[Value]) -> list[tuple[Value, Value]]:
    """Operands of the op and what it adds to their cotangents."""
    kind, operands = type(op), op.operands
    given: Sequence[Any]
    if kind in grad_control.GRADIENTS:
        wanted = [each in on_path for each in operands]
        given = grad_control.GRADIENTS[kind](cts, op, wanted, gradients)
    elif kind in GRADIENTS:
        given = GRADIENTS[kind](cts if kind in SEVERAL else cts[0], op)
    else:
        raise UnsupportedError(f"{op.name} has no gradient rule", help="detach what comes through it")
    made = []
    for operand, ct in zip(operands, given, strict=True):
        if operand not in on_path:
            continue
        cotangent = ct() if callable(ct) else ct
        if cotangent is not None:
            made.append((operand, fitting(cotangent, operand, op)))
    return made


def fitting(ct: Value, operand: Value, op: Op) -> Value:
    """A cotangent is of its value's type; of a complex one a real value takes the real part."""
    if ct.dtype.is_complex and not operand.dtype.is_complex:
        ct = convert(ct, operand.dtype)
    if ct.type is not operand.type:
        raise ShapeError(f"{op.name}: its gradient rule gives {ct.type} for an operand {operand.type}")
    return ct


def _place(values: list[Value], source: Any, known: set[Op | None]) -> None:
    """Say of the new ops that made these values where in the user's program they come from."""
    fresh = [value.op for value in values]
    while fresh:
        op = fresh.pop()
        if op is not None and op not in known and op.source is None:
            op.__dict__["source"] = source
            fresh.extend([operand.op for operand in op.operands])


# Rules


def _elementwise(partials: tuple[Map, ...]) -> Rule:
    def rule(ct: Value, op: Op) -> list[Any]:
        return [functools.partial(pulled_back, partial, ct, op) for partial in partials]

    return rule


def _abs(ct: Value, op: e.Unary) -> tuple[Value]:
    direction = b.sign(op.x)
    return (convert(ct, op.x.dtype) * direction,)


def _sign(ct: Value, op: e.Unary) -> tuple[Value | None]:
    """The direction of a complex number turns: across it, by 1 / |x|. There is none at 0."""
    if not op.x.dtype.is_complex:
        return (None,)
    return (turned(ct, op),)


def turned(t: Value, op: e.Unary) -> Value:
    """What of t lies across the complex number's direction, over its size: the same for both modes."""
    none = b.eq(op.x, 0)
    size = where(none, 1, b.abs(op.x))
    along = op.result * convert(b.real(t * b.conj(op.result)), t.dtype)
    return where(none, 0, (t - along) / convert(size, t.dtype))


def _broadcast(ct: Value, op: m.BroadcastInDim) -> tuple[Value]:
    """Sum over what was stretched or added."""
    x, places = op.x, op.broadcast_dimensions
    kept = [d for d, extent in zip(places, x.shape) if extent == op.shape[d]]
    summed = total(ct, [d for d in range(ct.rank) if d not in kept])
    order = sorted(kept)
    return (mv.reshape(mv.transpose(summed, [order.index(d) for d in kept]), x.shape),)


def _slice(ct: Value, op: m.Slice) -> tuple[Value]:
    if 0 in ct.shape:
        return (full_like(op.x, 0),)
    ends = [start + (n - 1) * stride + 1 for start, n, stride in zip(op.start_indices, ct.shape, op.strides)]
    high = [extent - end for extent, end in zip(op.x.shape, ends)]
    return (mv.pad(ct, op.start_indices, high, 0, [stride - 1 for stride in op.strides]),)


def _concatenate(ct: Value, op: m.Concatenate) -> list[Value]:
    parts, start = [], 0
    for operand in op.inputs:
        limit = start + operand.shape[op.dimension]
        parts.append(mv.slice_dim(ct, op.dimension, start, limit))
        start = limit
    return parts


def _pad(ct: Value, op: m.Pad) -> tuple[Any, ...]:
    low, high, interior = op.edge_padding_low, op.edge_padding_high, op.interior_padding

    def inside() -> Value:
        spread = mv.pad(ct, [-amount for amount in low], [-amount for amount in high])
        return mv.slice(spread, [0] * ct.rank, spread.shape, [amount + 1 for amount in interior])

    def around() -> Value:
        padding = mv.pad(full(op.x.shape, 0, ct.dtype), low, high, 1, interior)
        return total(where(b.ne(padding, 0), ct, 0), range(ct.rank))

    return inside, around


def _dynamic_update(ct: Value, op: m.DynamicUpdateSlice) -> tuple[Any, ...]:
    outside = lambda: mv.dynamic_update_slice(ct, full_like(op.update, 0), op.starts)
    inside = lambda: mv.dynamic_slice(ct, op.starts, op.update.shape)
    return outside, inside, *[None for _ in op.starts]


def _custom_call(cts: tuple[Value | None, ...], op: s.CustomCall) -> Sequence[Any]:
    rule = CUSTOM_GRADIENTS.get(op.call_target_name)
    if rule is None:
        called = op.call_target_name.removeprefix(f"{s.PYTHON}#").partition("#")[0]
        raise UnsupportedError(
            f"the call of {called!r} has no gradient",
            help="register one, by register_autograd, or detach what comes through it",
        )
    return rule(cts, op)


def _composite(cts: tuple[Value | None, ...], op: Composite) -> Sequence[Value | None]:
    gradients = op.rule(cts, op.results, op.inputs)
    if len(gradients) != len(op.inputs):
        raise ArgumentError(
            f"the gradient rule of {op.body.name or 'a composite'} gives {len(gradients)} cotangents "
            f"for {len(op.inputs)} arguments"
        )
    return gradients


# How calls of engines' functions differentiate, by the function's name: rules for several results.
CUSTOM_GRADIENTS: dict[str, Rule] = {}

GRADIENTS: dict[type[Op], Rule] = {
    **{kind: _elementwise(partials) for kind, partials in PARTIALS.items()},
    **{kind: lambda ct, op: [None for _ in op.operands] for kind in (*FLAT, s.RngBitGenerator)},
    e.Abs: _abs,
    e.Sign: _sign,
    e.Conj: lambda ct, op: (conj(ct),),
    e.Real: lambda ct, op: (b.complex(ct, 0) if op.x.dtype.is_complex else ct,),
    e.Imag: lambda ct, op: (b.complex(full_like(ct, 0), ct) if op.x.dtype.is_complex else None,),
    e.Complex: lambda ct, op: (b.real(ct), b.imag(ct)),
    e.Convert: lambda ct, op: (convert(ct, op.x.dtype) if carries(op.x) else None,),
    e.Select: lambda ct, op: (
        None,
        lambda: where(op.predicate, ct, 0),
        lambda: where(op.predicate, 0, ct),
    ),
    e.OptimizationBarrier: lambda cts, op: cts,
    m.BroadcastInDim: _broadcast,
    m.Reshape: lambda ct, op: (mv.reshape(ct, op.x.shape),),
    m.Transpose: lambda ct, op: (mv.transpose(ct, sorted(range(ct.rank), key=op.permutation.__getitem__)),),
    m.Reverse: lambda ct, op: (mv.reverse(ct, op.dimensions),),
    m.Slice: _slice,
    m.Concatenate: _concatenate,
    m.Pad: _pad,
    m.DynamicSlice: lambda ct, op: (
        mv.dynamic_update_slice(full_like(op.x, 0), ct, op.starts),
        *[None for _ in op.starts],
    ),
    m.DynamicUpdateSlice: _dynamic_update,
    Gather: grad_folds.gather,
    Scatter: grad_folds.scatter,
    s.Reduce: grad_folds.reduce,
    ReduceWindow: grad_windows.reduce_window,
    SelectAndScatter: grad_windows.select_and_scatter,
    s.Sort: grad_folds.sort,
    s.TopK: grad_folds.top_k,
    s.DotGeneral: grad_products.dot_general,
    Convolution: grad_convolution.convolution,
    s.Fft: grad_products.fft,
    s.Cholesky: grad_products.cholesky,
    s.TriangularSolve: grad_products.triangular_solve,
    s.CustomCall: _custom_call,
    s.Check: lambda ct, op: (ct, None),
    ShardingConstraint: resharded,
    c.PartitionId: lambda ct, op: (),
    c.AllReduce: c.reduce_pulled_back,
    c.AllGather: lambda ct, op: (c.ReduceScatter(ct, op.all_gather_dim, op.groups).result,),
    c.ReduceScatter: lambda ct, op: (c.AllGather(ct, op.scatter_dimension, op.groups).result,),
    c.AllToAll: lambda ct, op: (c.AllToAll(ct, op.concat_dimension, op.split_dimension, op.groups).result,),
    c.CollectivePermute: lambda ct, op: (c.CollectivePermute(ct, c.turned_back(op)).result,),
    Composite: _composite,
}

# Ops of several results, whose rules take a tuple of cotangents.
SEVERAL: frozenset[type[Op]] = frozenset(
    {
        *(e.OptimizationBarrier, Scatter, s.Reduce, ReduceWindow, s.Sort, s.TopK),
        *(s.RngBitGenerator, s.CustomCall, Composite),
    }
)
