"""Open sizes as values of a program, and how a dimension of open size lies in an array of its bound.

A dimension is a row of factors, the last one nearest in memory. Most have one: `n` of at most 64 lies in 64
elements, the first n of them valid. Where dimensions are merged, as by `x.reshape(b * n, 8)`, the factors
stay as they lie: `b` of 4, then `n` of at most 64, in 256 elements, of which each row of 64 has its first n
valid. So nothing is moved until an op needs the elements in one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tenfold.base import dtypes
from tenfold.base.dtypes import DType, float64
from tenfold.base.errors import UnsupportedError
from tenfold.flat.build import (
    add,
    constant,
    convert,
    div,
    iota,
    logical_and,
    lt,
    mul,
    rem,
    rsqrt,
    sqrt,
    sub,
    where,
)
from tenfold.flat.ir import Value
from tenfold.flat.sizes import DOUBLE, SINGLE, Formula, Formulas, Open

Extent = int | Open
SIZE = dtypes.int32
LIMIT = 1 << 31  # of what a size may be, and of how many elements lie in one array


class Factor(NamedTuple):
    """An extent, and in how many elements it lies."""

    extent: Extent
    bound: int

    @property
    def full(self) -> bool:
        return self.extent == self.bound


Layout = tuple[Factor, ...]
Layouts = tuple[Layout, ...]


def physical(layout: Layout) -> int:
    """In how many elements a dimension lies."""
    return math.prod([dimension.bound for dimension in layout])


def times(x: Extent, y: Extent) -> Extent:
    if isinstance(x, int) and isinstance(y, int):
        return x * y
    xs, ys = (each.values if isinstance(each, Open) else None for each in (x, y))
    count = len(xs if xs is not None else ys or ())
    return plain([a * b for a, b in zip(xs or [x] * count, ys or [y] * count)])


def quotient(x: Extent, y: Extent) -> Extent | None:
    """x / y if that is a whole number at all sizes."""
    xs, ys = (each.values if isinstance(each, Open) else None for each in (x, y))
    count = max(len(xs or ()), len(ys or ()), 1)
    pairs = list(zip(xs or [x] * count, ys or [y] * count))
    if any(b == 0 or a % b for a, b in pairs):
        return None
    return plain([a // b for a, b in pairs])


def plain(values: Sequence[int]) -> Extent:
    return values[0] if all(value == values[0] for value in values) else Open(values)


def joined(factors: Iterable[Factor]) -> Layout:
    """The same elements by as few factors as there can be: what is full joins what it is part of."""
    found: list[Factor] = []
    for factor in factors:
        if found and factor.full:
            found[-1] = Factor(times(found[-1].extent, factor.extent), found[-1].bound * factor.bound)
        elif found and found[-1] == (1, 1):
            found[-1] = factor
        else:
            found.append(factor)
    return tuple(found) or (Factor(1, 1),)


class Sizes:
    """The open sizes of a program. `ranges` holds the least and the greatest value of each symbol. `given`
    holds the scalars that pass the first symbols to a run of the program. The program computes the other
    symbols itself, such as a number of nonzero elements; `opening` adds those to `scalars`."""

    def __init__(self, ranges: dict[Open, tuple[int, int]], values: Sequence[Value]):
        self.ranges = ranges
        self.formulas = Formulas(ranges)
        self.scalars: dict[Open, Value] = dict(zip(ranges, values))
        self._uncertain = False  # of those of functions inside

    @property
    def uncertain(self) -> bool:
        """Whether the formula of a number is uncertain."""
        return self._uncertain or self.formulas.uncertain

    def include(self, inside: Sizes) -> None:
        """Note the sizes of a function inside the program."""
        self._uncertain |= inside.uncertain

    @property
    def known(self) -> dict[Open, tuple[int, int]]:
        """The sizes that have been told or counted so far."""
        return {size: ends for size, ends in self.ranges.items() if size in self.scalars}

    def formula(self, number: Open) -> Formula:
        whole = all(float(value).is_integer() for value in number.values)
        found = self.formulas.find(Open(map(int, number.values))) if whole else None
        if found is None:
            raise unknown(number)
        return found

    def interval(self, number: Extent) -> tuple[int, int]:
        """Between which numbers it lies."""
        return interval(self.formula(number), self.ranges) if isinstance(number, Open) else (number, number)

    def most(self, number: Extent) -> int:
        return max(self.interval(number)[1], 0)

    def simple(self, extent: Extent) -> Layout:
        """A dimension whose elements lie in one row."""
        bound = self.most(extent)
        if bound >= LIMIT:
            raise UnsupportedError(f"a size of up to {bound} is too large to be open")
        return (Factor(extent, bound),)

    def scalar(self, number: Extent) -> Value:
        """A whole number as an i32."""
        if not isinstance(number, Open):
            return constant(number, SIZE)
        found = self.scalars.get(number)
        if found is None:
            found = self.scalars[number] = self._computed(self.formula(number))
        return found

    def _computed(self, formula: Formula) -> Value:
        """A formula's value as an i32."""
        if self._largest(formula) >= LIMIT:
            raise UnsupportedError("a number that follows from open sizes does not fit 32 bits")
        value = formula.follow(self.scalars.__getitem__, _apply)
        return constant(value, SIZE) if isinstance(value, int) else value

    def _largest(self, formula: Formula) -> int:
        """The largest magnitude of a formula and of all its parts."""
        parts = [self._largest(part) for part in formula.parts if isinstance(part, Formula)]
        return max(*map(abs, interval(formula, self.ranges)), *parts)

    def number(self, number: Any, dtype: DType) -> Value:
        """A number in any dtype; of floats also a reciprocal, a root or a part of a whole number."""
        if not isinstance(number, Open):
            return constant(number, dtype)
        if dtype.kind == "float":
            formula = self.formulas.find_float(number, DOUBLE if dtype is float64 else SINGLE)
            if formula is not None:
                return self._float(*formula, dtype)
        return convert(self.scalar(Open(map(int, self._whole(number)))), dtype)

    def _whole(self, number: Open) -> tuple[int, ...]:
        if not all(float(value).is_integer() for value in number.values):
            raise unknown(number)
        return number.values

    def _float(self, form: str, formula: Formula, dtype: DType) -> Value:
        wide = convert(self._computed(formula), float64)
        if form.startswith("/"):
            wide = div(wide, int(form[1:]))
        elif form == "1/sqrt":
            wide = rsqrt(wide)
        elif form == "sqrt":
            wide = sqrt(wide)
        elif form == "1/":
            wide = div(constant(1, float64), wide)
        return convert(wide, dtype)


def unknown(number: Open) -> UnsupportedError:
    seen = ", ".join(map(str, number.values[:3]))
    return UnsupportedError(f"a number is {seen}, … for various sizes: how it follows from them is not known")


def interval(formula: Formula, ranges: dict[Open, tuple[int, int]]) -> tuple[int, int]:
    if formula.op == "size":
        return ranges[formula.parts[0]]
    if formula.op == "number":
        return formula.parts[0], formula.parts[0]
    (a, b), (c, d) = (interval(part, ranges) for part in formula.parts)
    if formula.op == "+":
        return a + c, b + d
    ends = [x * y for x in (a, b) for y in (c, d)] if formula.op == "*" else [a // c, b // c]
    return min(ends), max(ends)


def _apply(op: str, left: Any, right: Any) -> Any:
    if op == "//":
        return _floored(left, right)
    return add(left, right) if op == "+" else mul(left, right)


def _floored(left: Value, by: int) -> Value:
    """The quotient by a positive number, rounded down: StableHLO's own is rounded towards zero."""
    negative = lt(rem(left, by), 0)
    return sub(div(left, by), convert(negative, SIZE))


def coordinates(place: Value, sizes: Sequence[Value]) -> list[Value]:
    """Where a place lies along each of several factors of these sizes."""
    indices: list[Value] = []
    for i, size in enumerate(reversed(sizes)):
        last = i == len(sizes) - 1
        indices.append(place if last else rem(place, size))
        place = place if last else div(place, size)
    return indices[::-1]


def valid(layout: Layout, sizes: Sizes) -> Value | None:
    """Which elements of a dimension are valid; None if all are."""
    places = iota((physical(layout),), 0, SIZE)
    within = coordinates(places, [constant(dimension.bound, SIZE) for dimension in layout])
    mask: Value | None = None
    for each, place in zip(layout, within, strict=True):
        if not each.full:
            holds = lt(place, sizes.scalar(each.extent))
            mask = holds if mask is None else logical_and(mask, holds)
    return mask


def places(wanted: Sequence[Factor], own: Sequence[Factor], sizes: Sizes) -> Value:
    """For each element of the dimension `wanted`, which one of `own` it is: both have the same elements in
    one order. What is not valid reads anything."""
    total = math.prod([dimension.bound for dimension in wanted])
    at = coordinates(iota((total,), 0, SIZE), [constant(dimension.bound, SIZE) for dimension in wanted])
    linear = _linear(at, [sizes.scalar(dimension.extent) for dimension in wanted])
    # A size of zero has no valid elements, and nothing divides by it.
    apart = coordinates(linear, [_at_least_one(sizes, each.extent) for each in own])
    return _linear(apart, [constant(each.bound, SIZE) for each in own])


def _at_least_one(sizes: Sizes, extent: Extent) -> Value:
    size = sizes.scalar(extent)
    return size if sizes.interval(extent)[0] > 0 else where(lt(size, 1), constant(1, SIZE), size)


def _linear(coordinates: Sequence[Value], extents: Sequence[Value]) -> Value:
    linear = coordinates[0]
    for coordinate, extent in zip(coordinates[1:], extents[1:], strict=True):
        linear = add(mul(linear, extent), coordinate)
    return linear
