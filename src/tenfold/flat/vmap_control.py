"""Batching of what has functions inside: loops, branches, and composites with their rules for gradients."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.base import dtypes
from tenfold.base.meshes import Sharding
from tenfold.flat import collectives as c, data_ops as m, elementwise as e, structured as s
from tenfold.flat.build import convert, eq
from tenfold.flat.composite import Composite
from tenfold.flat.folding import reduce, sum, while_loop
from tenfold.flat.ir import Function, Op, Value
from tenfold.flat.vmap_rules import Batch


def while_rule(op: s.While, b: Batch) -> Op | Sequence[Value]:
    """Until all are done; what is done stays as it is. A loop that is equally long for all remains one."""
    same = [new is old for new, old in zip(op.body.results, op.body.params, strict=True)]
    having = [b.has(value) for value in op.carry]
    while True:
        condition, (differ,) = b.function(op.condition, having)
        body, after = b.function(op.body, having, having)
        # Elements that stop at different times end with different values of all that changes.
        wider = [h or a or (differ and not s) for h, a, s in zip(having, after, same, strict=True)]
        if wider == having:
            break
        having = wider
    carry = [b(each) if has else b.at(each) for each, has in zip(op.carry, having, strict=True)]
    if not differ:
        return s.While(tuple(carry), condition, body)

    def step(going: Value, *carry: Value) -> list[Value]:
        after = [
            _chosen(going, new, old) if has else old
            for new, old, has in zip(body.inline(carry, whole=True), carry, having, strict=True)
        ]
        return [*condition.inline(after, whole=True), *after]

    going = condition.inline(carry, whole=True)
    return while_loop(lambda going, *_: reduce(going, "or"), step, [*going, *carry])[1:]


def case_rule(op: s.Case, b: Batch) -> Op | Sequence[Value]:
    """One branch where all take the same; else all branches, and a choice between their results."""
    having, arguments = [b.has(argument) for argument in op.arguments], b.all_at(op.arguments)
    if not b.has(op.index):
        marks = [b.function(branch, having)[1] for branch in op.branches]
        stacked = [any(each) for each in zip(*marks, strict=True)]
        branches = tuple([b.function(branch, having, stacked)[0] for branch in op.branches])
        return s.Case(b.at(op.index), arguments, branches)
    every = [True] * len(op.results)
    results = [b.function(branch, having, every)[0].inline(arguments, whole=True) for branch in op.branches]
    chosen = results[-1]
    for place in reversed(range(len(results) - 1)):
        here = eq(b(op.index), place)
        chosen = [_chosen(here, new, old) for new, old in zip(results[place], chosen, strict=True)]
    return chosen


def manual_rule(op: c.ManualComputation, b: Batch) -> Op:
    """Code for one device on a batch, of which each device has all elements."""
    having = [b.has(operand) for operand in op.inputs]
    body, stacked = b.function(op.body, having)
    into = [
        _behind(in_sharding) if has else in_sharding
        for in_sharding, has in zip(op.in_shardings, having, strict=True)
    ]
    out = [
        _behind(out_sharding) if has else out_sharding
        for out_sharding, has in zip(op.out_shardings, stacked, strict=True)
    ]
    return c.ManualComputation(b.all_at(op.inputs), body, tuple(into), tuple(out))


def _behind(placed: Sharding) -> Sharding:
    """The sharding of a stack of which each device has all elements."""
    return Sharding(placed.mesh, ((), *placed.dims))


def _chosen(which: Value, on_true: Value, on_false: Value) -> Value:
    """For each element of the batch the one or the other."""
    return e.Select(m.BroadcastInDim(which, on_true.shape, (0,)).result, on_true, on_false).result


def composite_rule(op: Composite, b: Batch) -> Op | Sequence[Value]:
    """What it makes of a batch itself, or a composite still: of the batched body, and with rules that are the
    batched rules.

    All its results have the batch, or else the cotangent of one that has not would count for each element.
    """
    having = [b.has(operand) for operand in op.inputs]
    if op.mapped is not None:
        return op.mapped(b.size, b.all_at(op.inputs), having)
    body, _ = b.function(op.body, having, [True] * len(op.results))
    pullbacks: dict[tuple[bool, ...], tuple[Function, list[bool]]] = {}

    def pullback(present: tuple[bool, ...]) -> tuple[Function, list[bool]]:
        """The rule as a function of those cotangents that are given, and which of its results there are."""
        cotangents = [
            Value(result.type) if has else None for result, has in zip(op.results, present, strict=True)
        ]
        results = [Value(result.type) for result in op.results]
        inputs = [type(param)(param.type) for param in op.body.params]
        gradients = [each() if callable(each) else each for each in op.rule(cotangents, results, inputs)]
        outer = [*[cotangent for cotangent in cotangents if cotangent is not None], *results]
        rule = Function([*outer, *inputs], [gradient for gradient in gradients if gradient is not None])
        batched, _ = b.function(rule, [True] * len(outer) + having, [True] * len(rule.results))
        return batched, [gradient is not None for gradient in gradients]

    def batched_rule(
        cotangents: Sequence[Value | None], results: Sequence[Value], inputs: Sequence[Value]
    ) -> list[Value | None]:
        given = tuple([cotangent is not None for cotangent in cotangents])
        if given not in pullbacks:
            pullbacks[given] = pullback(given)
        function, there = pullbacks[given]
        arguments = [*[cotangent for cotangent in cotangents if cotangent is not None], *results, *inputs]
        found = iter(function.inline(arguments, whole=True))
        return [
            None if not is_there else next(found) if has else _summed(next(found))
            for is_there, has in zip(there, having, strict=True)
        ]

    pushes: dict[tuple[bool, ...], tuple[Function, list[bool]]] = {}

    def pushed(given: tuple[bool, ...]) -> tuple[Function, list[bool]]:
        """As `pullback`, of the rule for tangents."""
        assert op.push is not None
        tangents = [
            Value(operand.type) if has else None for operand, has in zip(op.inputs, given, strict=True)
        ]
        inputs = [type(param)(param.type) for param in op.body.params]
        pushed_tangents = op.push(tangents, inputs)
        moving = [tangent for tangent in tangents if tangent is not None]
        rule = Function([*moving, *inputs], [each for each in pushed_tangents if each is not None])
        stacked = [has for has, is_given in zip(having, given, strict=True) if is_given]
        batched, _ = b.function(rule, [*stacked, *having], [True] * len(rule.results))
        return batched, [each is not None for each in pushed_tangents]

    def batched_push(tangents: Sequence[Value | None], inputs: Sequence[Value]) -> list[Value | None]:
        given = tuple([tangent is not None for tangent in tangents])
        if given not in pushes:
            pushes[given] = pushed(given)
        function, there = pushes[given]
        pushed_tangents = iter(
            function.inline([*[tangent for tangent in tangents if tangent is not None], *inputs], whole=True)
        )
        return [next(pushed_tangents) if is_there else None for is_there in there]

    push = None if op.push is None else batched_push
    return Composite(b.all_at(op.inputs), body, batched_rule, {}, push)


def _summed(cotangent: Value) -> Value:
    """What all elements of the batch give to something they share; narrow floats are rounded once."""
    narrow = cotangent.dtype.is_floating_point and cotangent.dtype.itemsize < 4
    wide = convert(cotangent, dtypes.float32) if narrow else cotangent
    return convert(sum(wide, 0), cotangent.dtype)
