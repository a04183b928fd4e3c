"""Forward mode: `tangents` walks ops in order, with one rule for each FlatIR op: `JVPS`.

A rule `(ts, op)` takes a tangent, or None, for each operand and gives one, or None, for each result; at least
one operand has one. Elementwise rules follow from `partials.py`, linear ops are made again on tangents, and
where there is only a gradient, `transposed` turns it round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import ShapeError, UnsupportedError
from tenfold.flat import (
    build as b,
    collectives as c,
    data_builders as mv,
    data_ops as m,
    elementwise as e,
    folding as f,
    structured as s,
)
from tenfold.flat.build import full_like
from tenfold.flat.composite import Composite
from tenfold.flat.grad import GRADIENTS, SEVERAL, fitting, gradients, turned
from tenfold.flat.grad_control import carried
from tenfold.flat.grad_folds import permutation
from tenfold.flat.indexed import Gather, Scatter
from tenfold.flat.ir import Function, Op, Value, in_order
from tenfold.flat.partials import FLAT, PARTIALS, Map, carries, reached
from tenfold.flat.sharding import ShardingConstraint
from tenfold.flat.windows import Convolution, ReduceWindow, SelectAndScatter

Tangents = Sequence[Value | None]
Rule = Callable[[Tangents, Any], Sequence[Value | None]]


def tangents(
    ops: Sequence[Op], params: Sequence[Value], tangents_in: Tangents, results: Sequence[Value]
) -> list[Value | None]:
    """The tangent of each of `results`, given those of `params` (None: it stays as it is); None where nothing
    moves it. Only `ops`, operands before users, are differentiated."""
    tangents_of: dict[Value, Value] = {}
    for param, t in zip(params, tangents_in, strict=True):
        if t is not None and carries(param):
            if t.type is not param.type:
                raise ShapeError(f"the tangent of {param.type} is of its type, not {t.type}")
            tangents_of[param] = t
    for op in _leading(reached(ops, tangents_of)[0], results):
        ts = [tangents_of.get(operand) for operand in op.operands]
        if all(each is None for each in ts):
            continue
        rule = JVPS.get(type(op))
        if rule is None:
            raise UnsupportedError(f"{op.name} has no tangent rule", help="detach what comes through it")
        for result, t in zip(op.results, rule(ts, op), strict=True):
            if t is not None and carries(result):
                tangents_of[result] = t
    return [tangents_of.get(each) for each in results]


def _leading(ops: Sequence[Op], results: Sequence[Value]) -> list[Op]:
    """Those of the ops that lead to the results by values that have tangents."""
    needed = {result for result in results if carries(result)}
    leading = []
    for op in reversed(ops):
        if any(result in needed for result in op.results):
            needed.update(operand for operand in op.operands if carries(operand))
            leading.append(op)
    return leading[::-1]


# Rules


def _elementwise(partials: tuple[Map, ...]) -> Rule:
    def rule(ts: Tangents, op: Op) -> list[Value]:
        terms = [partial(t, op) for partial, t in zip(partials, ts, strict=True) if t is not None]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return [total]

    return rule


def linear(ts: Tangents, op: Op) -> Sequence[Value]:
    """The op itself on tangents: 0 for an operand that stays, and places and conditions as they are."""
    moved = iter(
        [t if t is not None else full_like(x, 0) if carries(x) else x for x, t in zip(op.operands, ts)]
    )
    fields = []
    for field in op.fields:
        value = op.__dict__[field]
        many = dict(op.operand_fields).get(field)
        if many is not None:
            value = tuple([next(moved) for _ in value]) if many else next(moved)
        fields.append(value)
    return type(op)(*fields).results


def bilinear(ts: Tangents, op: Any) -> list[Value]:
    """Linear in each of two operands, which come first: the sum over both."""
    first, second, *rest = [op.__dict__[field] for field in op.fields]
    terms = []
    if ts[0] is not None:
        terms.append(type(op)(ts[0], second, *rest).result)
    if ts[1] is not None:
        terms.append(type(op)(first, ts[1], *rest).result)
    return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]


def transposed(ts: Tangents, op: Op) -> list[Value | None]:
    """By the op's gradient rule, which is linear in the cotangent u: the tangent is the gradient by u of the
    inner product of what the rule gives with the operands' tangents."""
    kind, cts = type(op), [full_like(result, 0) if carries(result) else None for result in op.results]
    given = GRADIENTS[kind](tuple(cts) if kind in SEVERAL else cts[0], op)
    rows, moved = [], []
    for operand, t, row in zip(op.operands, ts, given, strict=True):
        if t is not None:
            row = row() if callable(row) else row
            if row is not None:
                rows.append(fitting(row, operand, op))
                moved.append(t)
    places = [i for i, ct in enumerate(cts) if ct is not None]
    transposed_tangents = gradients(in_order(rows), rows, moved, [ct for ct in cts if ct is not None])
    by_place = dict(zip(places, transposed_tangents))
    return [by_place.get(i) for i in range(len(cts))]


def _abs(ts: Tangents, op: e.Unary) -> list[Value]:
    (t,) = ts
    assert t is not None
    if op.x.dtype.is_complex:
        return [b.real(b.conj(b.sign(op.x)) * t)]
    return [t * b.sign(op.x)]


def _sign(ts: Tangents, op: e.Unary) -> list[Value | None]:
    (t,) = ts
    return [turned(t, op) if t is not None and op.x.dtype.is_complex else None]


def _by_body(kinds: Sequence[str]) -> Rule:
    """Linear where elements are folded so; by the gradient where not."""

    def rule(ts: Tangents, op: Any) -> Sequence[Value | None]:
        plain = len(op.inputs) == 1 and op.body.name in kinds
        return linear(ts, op) if plain else transposed(ts, op)

    return rule


def _sort(ts: Tangents, op: s.Sort) -> list[Value | None]:
    order = permutation(op)
    return [None if t is None else mv.take_along(t, order, op.dimension) if t.numel else t for t in ts]


def _top_k(ts: Tangents, op: s.TopK) -> list[Value | None]:
    (t,) = ts
    assert t is not None
    return [
        mv.take_along(t, op.results[1], op.x.rank - 1) if op.result.numel else full_like(op.result, 0),
        None,
    ]


def _select_and_scatter(ts: Tangents, op: SelectAndScatter) -> list[Value | None]:
    """Its choice stays; what it adds up moves."""
    if op.scatter.name != "add":
        raise UnsupportedError(
            "select_and_scatter has a tangent only where it adds", help="detach its arguments"
        )
    _, source, init = [full_like(x, 0) if t is None else t for x, t in zip(op.operands, ts)]
    if ts[1] is None and ts[2] is None:
        return [None]
    settings = (op.window_dimensions, op.window_strides, op.padding, op.select, op.scatter)
    return [SelectAndScatter(op.x, source, init, *settings).result]


def _inside(
    function: Function, values: Sequence[Value], moved: dict[int, Value]
) -> tuple[list[Value], Tangents]:
    """A function's results on these values, and their tangents, given those of the values by place."""
    results = function.inline(values, whole=True)
    ts = [moved.get(i) for i in range(len(values))]
    return results, tangents(in_order(results), values, ts, results)


def _while(ts: Tangents, op: s.While) -> list[Value | None]:
    """Tangents are carried along; how often the loop runs they do not change."""
    active = carried(op, [i for i, t in enumerate(ts) if t is not None])
    count = len(op.carry)

    def body(*values: Value) -> list[Value]:
        results, tangents = _inside(op.body, values[:count], dict(zip(active, values[count:])))
        return [*results, *_filled([results[i] for i in active], [tangents[i] for i in active])]

    def condition(*values: Value) -> Value:
        return op.condition.inline(values[:count], whole=True)[0]

    start = _filled([op.carry[i] for i in active], [ts[i] for i in active])
    moved = f.while_loop(condition, body, [*op.carry, *start])[count:]
    by_place = dict(zip(active, moved))
    return [by_place.get(i) for i in range(count)]


def _case(ts: Tangents, op: s.Case) -> list[Value | None]:
    count, moving = len(op.arguments), [i for i, t in enumerate(ts[1:]) if t is not None]

    def ahead(branch: Function) -> Callable[..., list[Value]]:
        def build(*values: Value) -> list[Value]:
            results, tangents = _inside(branch, values[:count], dict(zip(moving, values[count:])))
            carrying = [i for i, result in enumerate(results) if carries(result)]
            return _filled([results[i] for i in carrying], [tangents[i] for i in carrying])

        return build

    arguments = [*op.arguments, *[t for t in ts[1:] if t is not None]]
    found = iter(f.case(op.index, [ahead(each) for each in op.branches], arguments))
    return [next(found) if carries(result) else None for result in op.results]


def _manual(ts: Tangents, op: c.ManualComputation) -> list[Value | None]:
    count, moving = len(op.inputs), [i for i, t in enumerate(ts) if t is not None]
    carrying = [i for i, result in enumerate(op.results) if carries(result)]

    def build(*values: Value) -> list[Value]:
        results, tangents = _inside(op.body, values[:count], dict(zip(moving, values[count:])))
        return _filled([results[i] for i in carrying], [tangents[i] for i in carrying])

    inputs = (*op.inputs, *[t for t in ts if t is not None])
    into = (*op.in_shardings, *[op.in_shardings[i] for i in moving])
    parts = [param.type for param in op.body.params]
    body = f.function(build, [*parts, *[parts[i] for i in moving]], f"tangent of {op.body.name}")
    out = tuple([op.out_shardings[i] for i in carrying])
    found = iter(c.ManualComputation(inputs, body, into, out).results)
    return [next(found) if carries(result) else None for result in op.results]


def _filled(values: Sequence[Value], tangents: Tangents) -> list[Value]:
    return [full_like(x, 0) if t is None else t for x, t in zip(values, tangents, strict=True)]


JVPS: dict[type[Op], Rule] = {
    **{kind: _elementwise(partials) for kind, partials in PARTIALS.items()},
    **{kind: lambda ts, op: [None for _ in op.results] for kind in (*FLAT, s.RngBitGenerator)},
    **dict.fromkeys((e.Conj, e.Real, e.Imag, e.Complex, e.Convert, e.Select, e.OptimizationBarrier), linear),
    **dict.fromkeys((m.BroadcastInDim, m.Reshape, m.Transpose, m.Reverse, m.Slice, m.Concatenate), linear),
    **dict.fromkeys((m.Pad, m.DynamicSlice, m.DynamicUpdateSlice, Gather, s.Fft), linear),
    **dict.fromkeys((s.DotGeneral, Convolution), bilinear),
    **dict.fromkeys((s.Cholesky, s.TriangularSolve, s.CustomCall), transposed),
    Composite: lambda ts, op: transposed(ts, op) if op.push is None else op.push(ts, op.inputs),
    ShardingConstraint: linear,
    **dict.fromkeys((c.AllGather, c.ReduceScatter, c.AllToAll, c.CollectivePermute), linear),
    c.PartitionId: lambda ts, op: [None],
    c.AllReduce: c.reduce_pushed,
    c.ManualComputation: _manual,
    e.Abs: _abs,
    e.Sign: _sign,
    s.Reduce: _by_body(["add"]),
    ReduceWindow: _by_body(["add"]),
    Scatter: _by_body(["add", "set"]),
    SelectAndScatter: _select_and_scatter,
    s.Sort: _sort,
    s.TopK: _top_k,
    s.While: _while,
    s.Case: _case,
    s.Check: lambda ts, op: ts[:1],
}
