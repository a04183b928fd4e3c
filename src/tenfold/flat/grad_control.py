"""Gradient rules of ops with control flow inside. They take, beside cotangents and op, which operands want a
cotangent, and `gradients` itself, for the functions inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import UnsupportedError
from tenfold.flat import (
    build as b,
    collectives as c,
    data_builders as mv,
    elementwise as e,
    folding as f,
    structured as s,
)
from tenfold.flat.build import constant, full_like
from tenfold.flat.grad_folds import Cotangents
from tenfold.flat.ir import Function, Op, Value, in_order
from tenfold.flat.partials import number, reached

Gradients = Callable[..., list[Value | None]]


# Branches


def case(cts: Cotangents, op: s.Case, wanted: Sequence[bool], gradients: Gradients) -> list[Value | None]:
    """A case of the branches' gradients; each computes its branch again for what it needs of it."""
    asked = [i for i, each in enumerate(wanted[1:]) if each]
    given = [i for i, ct in enumerate(cts) if ct is not None]
    present = [ct for ct in cts if ct is not None]
    count = len(op.arguments)

    def back(branch: Function) -> Callable[..., list[Value]]:
        def build(*values: Value) -> list[Value]:
            results = branch.inline(values[:count], whole=True)
            wrt = [values[i] for i in asked]
            pulled = gradients(in_order(results), [results[i] for i in given], values[count:], wrt)
            return [full_like(x, 0) if ct is None else ct for x, ct in zip(wrt, pulled)]

        return build

    arguments = [*op.arguments, *present]
    pulled = iter(f.case(op.index, [back(each) for each in op.branches], arguments))
    return [None, *[next(pulled) if i in asked else None for i in range(count)]]


# Code for one device


def manual_computation(
    cts: Cotangents, op: c.ManualComputation, wanted: Sequence[bool], gradients: Gradients
) -> list[Value | None]:
    """The body's gradients on each device, which computes the body again. Devices that have the same part of
    a result share its cotangent; the cotangents of what they have the same part of are added up."""
    asked = [i for i, each in enumerate(wanted) if each]
    given = [i for i, ct in enumerate(cts) if ct is not None]
    count = len(op.inputs)

    def build(*values: Value) -> list[Value]:
        results = op.body.inline(values[:count], whole=True)
        copies = [len(c.shared(op.out_shardings[i])[0]) for i in given]
        shares = [ct if n == 1 else ct * (1 / n) for ct, n in zip(values[count:], copies, strict=True)]
        wrt = [values[i] for i in asked]
        pulled = gradients(in_order(results), [results[i] for i in given], shares, wrt)
        filled = [full_like(x, 0) if ct is None else ct for x, ct in zip(wrt, pulled, strict=True)]
        groups = [c.shared(op.in_shardings[i]) for i in asked]
        pairs = zip(filled, groups, strict=True)
        return [ct if len(each[0]) == 1 else c.all_reduce(ct, "add", each) for ct, each in pairs]

    present = [ct for ct in cts if ct is not None]
    into = (*op.in_shardings, *[op.out_shardings[i] for i in given])
    parts = [param.type for param in op.body.params] + [op.body.results[i].type for i in given]
    body = f.function(build, parts, f"gradient of {op.body.name}")
    out = tuple([op.in_shardings[i] for i in asked])
    pulled = iter(c.ManualComputation((*op.inputs, *present), body, into, out).results)
    return [next(pulled) if each else None for each in wanted]


# Loops


def while_loop(
    cts: Cotangents, op: s.While, wanted: Sequence[bool], gradients: Gradients
) -> Sequence[Value | None]:
    """Run again forwards to keep what each round starts from, then backwards round by round."""
    count = trip_count(op)
    if count == 0:
        return cts
    active = carried(op, [i for i, asked in enumerate(wanted) if asked])

    def pull_back(*values: Value) -> list[Value]:
        after, before = values[: len(active)], values[len(active) :]
        results = op.body.inline(before, whole=True)
        wrt = [before[i] for i in active]
        found = gradients(in_order(results), [results[i] for i in active], after, wrt)
        return [full_like(x, 0) if ct is None else ct for x, ct in zip(wrt, found)]

    types = [value.type for value in op.carry]
    one_round = f.function(pull_back, [*[types[i] for i in active], *types])
    used = {operand for made in one_round.ops for operand in made.operands} | set(one_round.results)
    needed = [i for i, param in enumerate(one_round.params[len(active) :]) if param in used]
    fixed = [i for i in needed if _unchanged(op, i)]
    kept = [i for i in needed if i not in fixed]
    history = _history(op, kept, count)

    def back(place: Value, *values: Value) -> list[Value]:
        after, rest = values[: len(active)], values[len(active) :]
        known = dict(zip(kept, [mv.read_at(each, place) for each in rest[: len(kept)]]))
        known.update(zip(fixed, rest[len(kept) :]))
        before = [known[i] if i in known else full_like(value, 0) for i, value in enumerate(op.carry)]
        return [place - 1, *one_round.inline([*after, *before], whole=True), *rest]

    start = [full_like(op.carry[i], 0) if (ct := cts[i]) is None else ct for i in active]
    carry = [constant(count - 1, dtypes.int64), *start, *history, *[op.carry[i] for i in fixed]]
    found = f.while_loop(lambda place, *_: place >= 0, back, carry)[1:]
    by_place = dict(zip(active, found))
    return [by_place.get(i) for i in range(len(op.carry))]


def _unchanged(op: s.While, i: int) -> bool:
    return op.body.results[i] is op.body.params[i]


def carried(op: s.While, start: Sequence[int]) -> list[int]:
    """The places of the carry that have a derivative by those of `start`, after any number of rounds."""
    places = set(start)
    while True:
        _, values = reached(op.body.ops, [op.body.params[i] for i in places])
        more = {i for i, result in enumerate(op.body.results) if result in values} - places
        if not more:
            return sorted(places)
        places |= more


def _history(op: s.While, kept: list[int], count: int) -> list[Value]:
    """For each of these places of the carry its value before each round, stacked."""
    if not kept:
        return []
    size = len(op.carry)

    def step(place: Value, *values: Value) -> list[Value]:
        carry, stacks = values[:size], values[size:]
        stacks = tuple([mv.written_at(stack, carry[i], place) for i, stack in zip(kept, stacks)])
        return [place + 1, *op.body.inline(carry, whole=True), *stacks]

    stacks = [b.full((count, *op.carry[i].shape), 0, op.carry[i].dtype) for i in kept]
    start = [constant(0, dtypes.int64), *op.carry, *stacks]
    return list(f.while_loop(lambda place, *_: place < count, step, start)[1 + size :])


def trip_count(op: s.While) -> int:
    """How often the body runs, or an error where that is not known."""
    count = known_trip_count(op)
    if count is None:
        raise UnsupportedError(
            "the gradient of a loop needs to know how often it runs, which is not plain from its condition",
            help="count up to a constant, with a constant start and step, or detach what comes through the "
            "loop",
        )
    return count


def known_trip_count(op: s.While) -> int | None:
    """How often the body runs, where a counter of the carry has a known start, step and bound."""
    compare = op.condition.results[0].op
    if isinstance(compare, e.Compare):
        for counter, bound, direction in (
            (compare.x, compare.y, compare.direction),
            (compare.y, compare.x, _MIRRORED[compare.direction]),
        ):
            place = _place(counter, op.condition.params)
            if place is None:
                continue
            start, step = number(op.carry[place]), _step(op, place)
            limit = _number_in(op.condition, bound, op)
            if isinstance(start, int) and isinstance(step, int) and isinstance(limit, int):
                count = _rounds(start, step, limit, direction)
                if count is not None:
                    return count
    return None


_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


def _rounds(start: int, step: int, bound: int, direction: str) -> int | None:
    """How many of start, start + step, ... hold the condition before one does not; None for no end."""
    if direction in ("GT", "GE"):
        start, step, bound, direction = -start, -step, -bound, _MIRRORED[direction]
    if direction == "LE":
        bound += 1
    if direction == "EQ":
        return None if start == bound and step == 0 else int(start == bound)
    if direction == "NE":
        if start == bound:
            return 0
        hits = step != 0 and (bound - start) % step == 0 and (bound - start) // step > 0
        return (bound - start) // step if hits else None
    if start >= bound:
        return 0
    return -(-(bound - start) // step) if step > 0 else None


def _place(value: Value, params: Sequence[Value]) -> int | None:
    return next((i for i, param in enumerate(params) if param is value), None)


def _number_in(function: Function, value: Value, op: s.While) -> Any:
    """The number that a value inside the loop always is: one written there, or one that the carry keeps."""
    place = _place(value, function.params)
    if place is None:
        return number(value)
    return number(op.carry[place]) if _unchanged(op, place) else None


def _step(op: s.While, place: int) -> Any:
    counter, made = op.body.params[place], op.body.results[place].op
    if isinstance(made, (e.Add, e.Subtract)) and made.x is counter:
        step = _number_in(op.body, made.y, op)
        return -step if isinstance(made, e.Subtract) and step is not None else step
    if isinstance(made, e.Add) and made.y is counter:
        return _number_in(op.body, made.x, op)
    return None


GRADIENTS: dict[type[Op], Callable[..., Sequence[Value | None]]] = {
    s.Case: case,
    s.While: while_loop,
    c.ManualComputation: manual_computation,
}
