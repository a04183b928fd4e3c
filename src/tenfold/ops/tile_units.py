"""Calls of kernels of our own that take the place of several ops of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.base import dtypes
from tenfold.flat.elementwise import Convert
from tenfold.flat.ir import Function, Op, Value
from tenfold.flat.narrow import HALVES


class Unit(NamedTuple):
    """A call that takes the place of ops: what it needs, and which values its results stand for."""

    inputs: tuple[Value, ...]
    call: Callable[[Sequence[Value]], Sequence[Value]]
    stands_for: tuple[tuple[int, Value], ...]  # a result, and a value of the program before


class Graph:
    """Who uses a value, and what it depends on."""

    def __init__(self, function: Function):
        self.places = {op: i for i, op in enumerate(function.ops)}
        self.results = set(function.results)
        self.users: dict[Value, list[Op]] = {}
        for op in function.ops:
            for operand in op.operands:
                self.users.setdefault(operand, []).append(op)
        self.taken: set[Op] = set()  # sums that a call has absorbed

    def depends(self, value: Value, op: Op) -> bool:
        """Whether a value is computed from a result of the op."""
        first, stack, seen = self.places[op], [value.op], set[Op]()
        while stack:
            each = stack.pop()
            if each is op:
                return True
            if each is not None and each not in seen and self.places[each] > first:
                seen.add(each)
                stack += [operand.op for operand in each.operands]
        return False

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
