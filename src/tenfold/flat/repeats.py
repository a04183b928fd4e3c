"""Finds what repeats in a long program, such as the layers of a network, and cuts the program into steps.
Equal steps share one function, so that it is compiled once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.flat.data_ops import BroadcastInDim, Constant, Iota, Reshape
from tenfold.flat.ir import Function, Op, Value, replay

GRAM = 12  # ops in a row by which a repetition is found
TRIES = 40  # later places that one is compared with
LEAST = 60  # ops that need not be compiled again, for which a step of its own is worth while
COPIED = (Constant, Iota, BroadcastInDim, Reshape)  # into the steps that use them, if they have no operands
LITERAL = 1024  # elements of a constant that is copied

Row = tuple[Value, ...]  # a value of a step: of each time that the step is taken, which one it is


class Step(NamedTuple):
    """A part of a program: a function of some of the program's values that computes others of them."""

    function: Function
    operands: tuple[Value, ...]
    results: tuple[Value, ...]


class Run(NamedTuple):
    """Ops that come some number of `times` in a row, `period` ops each time, from the place `start` on."""

    start: int
    period: int
    times: int

    @property
    def saved(self) -> int:
        """The ops that need not be compiled again."""
        return self.period * (self.times - 1)


def steps(function: Function) -> list[Step]:
    """A program as steps, to be taken one after the other. It is one step if nothing repeats."""
    ops = function.ops
    parts: list[_Part] = []
    if any(_captures(region) for op in ops for region in regions(op)):
        parts.append(_Part([ops]))
    else:
        end = 0
        for run in runs(kinds(ops)):
            stop = run.start + run.period * run.times
            times = [ops[place : place + run.period] for place in range(run.start, stop, run.period)]
            part = _Part(times)
            if run.saved >= LEAST and part.template is not None:
                parts += [_Part([ops[end : run.start]]), part]
                end = stop
        parts.append(_Part([ops[end:]]))
    needed = {value for part in parts for row in part.rows for value in row}
    needed.update(function.results)
    return [step for part in parts for step in part.steps(needed)]


class _Part:
    """Ops that come once, or some number of `times` in a row, and the `rows` of values that they take from
    outside. The time whose values are all different serves as the `template` of the others; if there is none,
    the times differ in more than what they take."""

    def __init__(self, times: Sequence[Sequence[Op]]):
        self.times = times
        self.rows: dict[Row, None] = {}
        self.template: int | None = None
        known = [
            {result: (k, i) for k, op in enumerate(ops) for i, result in enumerate(op.results)}
            for ops in times
        ]
        for ops in zip(*times):
            for row in zip(*[op.operands for op in ops]):
                places = {own.get(value) for own, value in zip(known, row)}
                if len(places) > 1:
                    return
                if places == {None} and not (len(set(row)) == 1 and _is_copied(row[0])):
                    self.rows[row] = None
        for time in range(len(times)):
            if len({row[time] for row in self.rows}) == len(self.rows):
                self.template = time
                return

    def steps(self, needed: set[Value]) -> list[Step]:
        """A step for each time, all with one function. They compute the values that are `needed`."""
        places = [
            (k, i)
            for k, ops in enumerate(zip(*self.times))
            for i, row in enumerate(zip(*[op.results for op in ops]))
            if any(value in needed for value in row)
        ]
        if not places or self.template is None:
            return []
        ops = self.times[self.template]
        params = [Value(row[self.template].type) for row in self.rows]
        values = {row[self.template]: param for row, param in zip(self.rows, params)}
        replay(ops, values, whole=True)
        function = Function(params, [values[ops[k].results[i]] for k, i in places])
        return [
            Step(
                function,
                tuple([row[time] for row in self.rows]),
                tuple([ops[k].results[i] for k, i in places]),
            )
            for time, ops in enumerate(self.times)
        ]


def _is_copied(value: Value) -> bool:
    op = value.op
    if not isinstance(op, COPIED) or (type(op) is Constant and value.numel > LITERAL):
        return False
    return all(_is_copied(operand) for operand in op.operands)


def kinds(ops: Sequence[Op]) -> list[int]:
    """Of each op a number, which is the same for ops that differ in nothing but the values that they take."""
    numbers: dict[Any, int] = {}
    of_patterns: dict[Any, int] = {}  # which are quicker to look up
    found = []
    for op in ops:
        types = tuple([value.type for value in (*op.operands, *op.results)])
        number = of_patterns.get((op.pattern, types))
        if number is None:
            number = numbers.setdefault((type(op), types, _frozen(op.attributes)), len(numbers))
            of_patterns[op.pattern, types] = number
        found.append(number)
    return found


def _frozen(attribute: Any) -> Any:
    """An attribute in a form that compares by what it holds."""
    if isinstance(attribute, dict):
        return tuple([(key, _frozen(value)) for key, value in attribute.items()])
    if isinstance(attribute, (tuple, list)):
        return type(attribute), tuple([_frozen(element) for element in attribute])
    if isinstance(attribute, np.ndarray):
        return attribute.dtype.str, attribute.shape, attribute.tobytes()
    if isinstance(attribute, Function):
        return _structure(attribute)
    if isinstance(attribute, float):
        return attribute.hex()  # which tells zeros of both signs apart
    return type(attribute), attribute


def _structure(region: Function) -> Any:
    values = [*region.params, *[result for op in region.ops for result in op.results]]
    places = {value: place for place, value in enumerate(values)}
    ops = [
        (type(op), _frozen(op.attributes), tuple([places.get(operand, operand) for operand in op.operands]))
        for op in region.ops
    ]
    types = tuple([value.type for value in values])
    return types, tuple(ops), tuple([places.get(result, result) for result in region.results])


def regions(op: Op) -> list[Function]:
    """The functions that an op holds: branches, and the condition and body of a loop."""
    held = [op.__dict__[field] for field in op.fields]
    return [
        region
        for each in held
        for region in (each if isinstance(each, tuple) else (each,))
        if isinstance(region, Function)
    ]


def _captures(region: Function) -> bool:
    """Whether a region reads a value of the program around it."""
    read = [*region.results, *[operand for op in region.ops for operand in op.operands]]
    if any(value.op is None and value not in region.params for value in read):
        return True
    return any(_captures(inner) for op in region.ops for inner in regions(op))


def runs(sequence: Sequence[int]) -> list[Run]:
    """Where a part of a sequence comes several times in a row, from the left. Of those that begin at one
    place it is the one by which most is saved."""
    following = _following(sequence)
    found = []
    start = 0
    while start < len(sequence):
        best = None
        later = following[start]
        for _ in range(TRIES):
            if not later:
                break
            run = _run(sequence, start, later)
            if run.saved > (best.saved if best else 0):
                best = run
            later = following[later]
        if best is None:
            start += 1
        else:
            found.append(best)
            start += best.period * best.times
    return found


def _run(sequence: Sequence[int], start: int, later: int) -> Run:
    """How often what lies between two places repeats."""
    period, equal = later - start, 0
    while later + equal < len(sequence) and sequence[start + equal] == sequence[later + equal]:
        equal += 1
    return Run(start, period, 1 + equal // period)


def _following(sequence: Sequence[int]) -> list[int]:
    """For each place the next one that goes on with the same ops, 0 if there is none."""
    last: dict[tuple[int, ...], int] = {}
    following = [0] * len(sequence)
    for place in range(len(sequence) - GRAM, -1, -1):
        gram = tuple(sequence[place : place + GRAM])
        following[place] = last.get(gram, 0)
        last[gram] = place
    return following
