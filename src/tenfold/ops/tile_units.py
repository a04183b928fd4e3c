"""Calls of kernels of our own that take the place of several ops of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.base import dtypes
from tenfold.flat.elementwise import Convert
from tenfold.flat.half_products import HALVES
from tenfold.flat.ir import Function, Op, Value


class Unit(NamedTuple):
    """A call that takes the place of ops: what it needs, and which values its results stand for."""

    inputs: tuple[Value, ...]
    call: Callable[[Sequence[Value]], Sequence[Value]]
    stands_for: tuple[tuple[int, Value], ...]  # a result, and a value of the program before


class Graph:
    """Who uses a value, and what it depends on, given the calls that take the place of several ops."""

    def __init__(self, function: Function):
        self.places = {op: i for i, op in enumerate(function.ops)}
        self.results = set(function.results)
        self.users: dict[Value, list[Op]] = {}
        for op in function.ops:
            for operand in op.operands:
                self.users.setdefault(operand, []).append(op)
        self.taken: set[Op] = set()  # ops that the call of another op takes the place of
        self._shared: dict[Op, set[Op]] = {}  # of an op, those that its call takes the place of
        self._spans: list[tuple[int, int]] = []  # the places of two ops that share a call

    def unite(self, op: Op, other: Op) -> None:
        """Let the call of one op take the place of another: who uses either waits for what both need."""
        self.taken.add(other)
        ops = self._shared.get(op, {op}) | self._shared.get(other, {other})
        self._shared.update(dict.fromkeys(ops, ops))
        places = self.places[op], self.places[other]
        self._spans.append((min(places), max(places)))

    def depends(self, value: Value, op: Op) -> bool:
        """Whether a value is computed from what the call of the op gives."""
        ends = self._shared.get(op, {op})
        first, stack, seen = self._first(ends), [value.op], set[Op]()
        while stack:
            each = stack.pop()
            if each in ends:
                return True
            if each is not None and each not in seen and self.places[each] >= first:
                ops = self._shared.get(each, {each})
                seen |= ops
                stack += [operand.op for member in ops for operand in member.operands]
        return False

    def _first(self, ops: set[Op]) -> int:
        """A place before which nothing depends on the ops: a call lets an op wait for what comes after it."""
        first = min([self.places[op] for op in ops])
        while earlier := [low for low, high in self._spans if low < first <= high]:
            first = min(earlier)
        return first

    def only(self, users: Sequence[Op], value: Value) -> bool:
        """Whether nothing else uses a value."""
        return value not in self.results and len(users) == len(self.users[value])

    def narrowing(self, value: Value) -> list[Convert]:
        """The conversions of a float32 value to half precision."""
        found = [each for each in self.users.get(value, []) if isinstance(each, Convert)]
        return [each for each in found if each.dtype in HALVES and each.dtype is found[0].dtype]


def unwidened(value: Value) -> Value:
    op = value.op
    if isinstance(op, Convert) and value.dtype is dtypes.float32 and op.x.dtype in HALVES:
        return op.x
    return value


def rebuilt(function: Function, units: dict[Value, Unit]) -> Function:
    """The program with units in place of the ops that give their values, however those are ordered."""
    values: dict[Value, Value] = {param: param for param in function.params}
    stack = list(function.results)
    while stack:
        value = stack[-1]
        if value in values:
            stack.pop()
            continue
        unit = units.get(value)
        op = value.op
        assert op is not None
        missing = [each for each in (unit.inputs if unit else op.operands) if each not in values]
        if missing:
            stack += missing
            continue
        stack.pop()
        if unit is None:
            copy = op.replace(values, None)
            values.update(zip(op.results, copy.results, strict=True))
        else:
            results = unit.call([values[each] for each in unit.inputs])
            values.update({stood: results[i] for i, stood in unit.stands_for})
    return Function(function.params, [values[result] for result in function.results], function.name)
