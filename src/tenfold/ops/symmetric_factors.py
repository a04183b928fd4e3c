"""Rows of the LDL factors of symmetric and Hermitian matrices, by Bunch and Kaufman: each step takes one row,
or two where no single one is large enough to divide by, and exchanges it with a better one. XLA has no such
call of LAPACK's, so the steps are a loop; it gives what LAPACK's `sytrf` and `sytrs` do, pivots included.
"""

from __future__ import annotations

import math
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.ops.matrices import check_matrices, stacked, succeeded
from tenfold.ops.samples import Matrices, S, pivot_rows
from tenfold.ops.table import op
from tenfold.ops.undifferentiable import undifferentiable

ENOUGH = (1 + math.sqrt(17)) / 8  # from where on a single row bounds the growth of the rest


class _Stack:
    """A stack of square matrices, and at which row of each we are: `k`, one number for each matrix."""

    def __init__(self, count: int, size: int, hermitian: bool):
        self.shape = (count, size)
        self.hermitian = hermitian

    @property
    def places(self) -> Value:
        """Made where it is asked for: a loop's body sees nothing from outside."""
        return flat.iota(self.shape, 1, dtypes.int32)

    def at(self, k: Value) -> Value:
        """Where along a row or column the place k is: nowhere if it is beyond."""
        return flat.eq(self.places, flat.unsqueeze(k, 1))

    def after(self, k: Value) -> Value:
        return self.places > flat.unsqueeze(k, 1)

    def column(self, x: Value, k: Value) -> Value:
        return flat.sum(flat.where(flat.unsqueeze(self.at(k), 1), x, 0), (2,))

    def entry(self, column: Value, k: Value) -> Value:
        return flat.sum(flat.where(self.at(k), column, 0), (1,))

    def exchanged(self, x: Value, one: Value, other: Value, dims: tuple[int, ...]) -> Value:
        """x with two of its rows, or rows and columns, in each other's place."""
        one, other = flat.unsqueeze(one, 1), flat.unsqueeze(other, 1)
        order = flat.where(flat.eq(self.places, one), other, self.places)
        order = flat.where(flat.eq(self.places, other), one, order)
        for dim in dims:
            shape = [extent if i in (0, dim) else 1 for i, extent in enumerate(x.shape)]
            x = flat.take_along(x, flat.broadcast_to(flat.reshape(order, shape), x.shape), dim)
        return x

    def mirrored(self, x: Value) -> Value:
        """The other of two entries that a symmetric or Hermitian matrix has."""
        return flat.conj(x) if self.hermitian and x.dtype.is_complex else x

    def on_diagonal(self, x: Value) -> Value:
        """An entry of the diagonal, which in a Hermitian matrix is real."""
        return flat.convert(flat.real(x), x.dtype) if self.hermitian and x.dtype.is_complex else x

    def outer(self, left: Value, right: Value) -> Value:
        return flat.unsqueeze(left, 2) * flat.unsqueeze(self.mirrored(right), 1)


def _size(x: Value) -> Value:
    """How large a number is: of a complex one, the sum of its parts."""
    return flat.abs(flat.real(x)) + flat.abs(flat.imag(x)) if x.dtype.is_complex else flat.abs(x)


def _number(k: Value) -> Value:
    return flat.unsqueeze(k, 1)


class _Block:
    """The inverse of [[a, c'], [c, e]] where it is `taken`, with a and e divided by c' and c, as LAPACK
    does."""

    def __init__(self, stack: _Stack, a: Value, c: Value, e: Value, taken: Value):
        self.lower = flat.where(taken, c, 1)
        self.upper = stack.mirrored(self.lower)
        self.a, self.e = a / self.upper, e / self.lower
        self.share = 1 / flat.where(taken, self.a * self.e - 1, 1)


def _of_nothing(cotangents: Any, results: Any, *given: Any) -> tuple[Any, ...]:
    """Zeros, which flow on to where they are refused."""
    floats = [each for each in given if isinstance(each, Value)]
    return tuple(
        [flat.full_like(each, 0) if each.dtype.kind in ("float", "complex") else None for each in floats]
    )


@flat.differentiated(_of_nothing)
def _factored(x: Value, hermitian: bool) -> tuple[Value, Value, Value]:
    """L below D, pivots and info of a stack, of which the lower triangles are read."""
    count, size = x.shape[0], x.shape[-1]
    stack = _Stack(count, size, hermitian)
    rows, columns = (flat.iota(x.shape, dim, dtypes.int32) for dim in (1, 2))
    turned = stack.mirrored(flat.transpose(x, (0, 2, 1)))
    whole = flat.where(rows >= columns, x, turned)
    whole = flat.where(flat.eq(rows, columns), stack.on_diagonal(whole), whole)

    def step(k: Value, rest: Value, made: Value, pivots: Value, info: Value) -> list[Value]:
        column = stack.column(rest, k)
        own = _size(stack.entry(column, k))
        sizes = flat.where(stack.after(k), _size(column), -1)
        largest = flat.maximum(flat.reduce(sizes, "max", (1,)), 0)
        first = flat.where(flat.eq(sizes, _number(largest)), stack.places, size)
        best = flat.minimum(flat.reduce(first, "min", (1,)), size - 1)
        other = stack.column(rest, best)
        there = ~stack.at(best) & (stack.places >= _number(k))
        beside = flat.maximum(flat.reduce(flat.where(there, _size(other), 0), "max", (1,)), 0)
        nothing = flat.eq(flat.maximum(own, largest), 0)
        stays = nothing | (own >= ENOUGH * largest) | (own * beside >= ENOUGH * largest * largest)
        two = ~stays & (_size(stack.entry(other, best)) < ENOUGH * beside)
        better = flat.where(stays, k, best)
        after = k + 1
        rest = stack.exchanged(rest, flat.where(two, after, k), better, (1, 2))
        first_column, second_column = stack.column(rest, k), stack.column(rest, after)
        a, c, e = (
            stack.entry(first_column, k),
            stack.entry(first_column, after),
            stack.entry(second_column, after),
        )
        # By one row
        below = flat.where(stack.after(k), first_column, 0)
        single = below / _number(flat.where(nothing | two, 1, a))
        # By two: the inverse of [[a, c'], [c, e]]
        far = stack.after(after)
        left, right = flat.where(far, first_column, 0), flat.where(far, second_column, 0)
        block = _Block(stack, a, c, e, two)
        one = _number(block.share / block.upper) * (_number(block.e) * left - right)
        second = _number(block.share / block.lower) * (_number(block.a) * right - left)
        pairs = _number(two)
        fall = flat.where(
            flat.unsqueeze(pairs, 2),
            stack.outer(one, left) + stack.outer(second, right),
            stack.outer(single, below),
        )
        entries = flat.where(stack.at(k), _number(a), flat.where(pairs, one, single))
        entries = flat.where(pairs & stack.at(after), _number(c), entries)
        seconds = flat.where(stack.at(after), _number(e), second)
        here, next_one = flat.unsqueeze(stack.at(k), 1), flat.unsqueeze(pairs & stack.at(after), 1)
        kept = flat.unsqueeze(~stack.after(k) & ~stack.at(k), 2)
        made = flat.where(here & ~kept, flat.unsqueeze(entries, 2), made)
        made = flat.where(next_one & flat.unsqueeze(stack.after(k), 2), flat.unsqueeze(seconds, 2), made)
        told = flat.where(two, -(better + 1), better + 1)
        marks = stack.at(k) | (pairs & stack.at(after))
        pivots = flat.where(marks, _number(told), pivots)
        info = flat.where(nothing & flat.eq(info, 0) & (k < size), k + 1, info)
        return [k + 1 + flat.convert(two, dtypes.int32), rest - fall, made, pivots, info]

    zeros = flat.full((count,), 0, dtypes.int32)
    start = [zeros, whole, flat.full(x.shape, 0, x.dtype), flat.full((count, size), 0, dtypes.int32), zeros]
    going = lambda k, *others: flat.reduce(k < size, "or")
    _, _, made, pivots, info = flat.while_loop(going, step, start)
    made = flat.where(rows >= columns, made, 0)
    return made, pivots, info


@flat.differentiated(_of_nothing)
def _solved(factors: Value, pivots: Value, b: Value, hermitian: bool) -> Value:
    """The columns of b divided by the matrix that was factored: by L, by D, by L from the other side."""
    count, size = factors.shape[0], factors.shape[-1]
    stack = _Stack(count, size, hermitian)

    def row(x: Value, k: Value) -> Value:
        return flat.sum(flat.where(flat.unsqueeze(stack.at(k), 2), x, 0), (1,))

    def put(x: Value, k: Value, row: Value) -> Value:
        return flat.where(flat.unsqueeze(stack.at(k), 2), flat.unsqueeze(row, 1), x)

    def pivot(pivots: Value, k: Value) -> tuple[Value, Value]:
        """Whether two rows were taken here, and with which the last of them was exchanged."""
        told = stack.entry(pivots, k)
        return told < 0, flat.where(flat.eq(told, 0), k, flat.abs(told) - 1)

    def down(k: Value, x: Value, factors: Value, pivots: Value) -> list[Value]:
        two, other = pivot(pivots, k)
        after = k + 1
        x = stack.exchanged(x, flat.where(two, after, k), other, (1,))
        first, second = stack.column(factors, k), stack.column(factors, after)
        a, c, e = stack.entry(first, k), stack.entry(first, after), stack.entry(second, after)
        a, e = stack.on_diagonal(a), stack.on_diagonal(e)
        top, next_one = row(x, k), row(x, after)
        pairs = _number(two)
        below = flat.where(flat.where(pairs, stack.after(after), stack.after(k)), first, 0)
        further = flat.where(pairs & stack.after(after), second, 0)
        x = x - flat.unsqueeze(below, 2) * flat.unsqueeze(top, 1)
        x = x - flat.unsqueeze(further, 2) * flat.unsqueeze(next_one, 1)
        block = _Block(stack, a, c, e, two)
        scaled, scaled_next = top / _number(block.upper), next_one / _number(block.lower)
        share = _number(block.share)
        both = (
            share * (_number(block.e) * scaled - scaled_next),
            share * (_number(block.a) * scaled_next - scaled),
        )
        x = put(x, k, flat.where(pairs, both[0], top / _number(flat.where(two | (k >= size), 1, a))))
        x = flat.where(flat.unsqueeze(pairs, 2), put(x, after, both[1]), x)
        return [k + 1 + flat.convert(two, dtypes.int32), x, factors, pivots]

    def up(k: Value, x: Value, factors: Value, pivots: Value) -> list[Value]:
        two, other = pivot(pivots, k)
        before = k - 1
        for place, wanted in ((k, None), (before, two)):
            column = flat.where(stack.after(k), stack.mirrored(stack.column(factors, place)), 0)
            less = row(x, place) - flat.sum(flat.unsqueeze(column, 2) * x, (1,))
            changed = put(x, place, less)
            x = changed if wanted is None else flat.where(flat.unsqueeze(_number(wanted), 2), changed, x)
        x = stack.exchanged(x, k, other, (1,))
        return [k - 1 - flat.convert(two, dtypes.int32), x, factors, pivots]

    given = (factors, pivots)
    start, end = (flat.full((count,), k, dtypes.int32) for k in (0, size - 1))
    b = flat.while_loop(lambda k, *_: flat.reduce(k < size, "or"), down, [start, b, *given])[1]
    return flat.while_loop(lambda k, *_: flat.reduce(k >= 0, "or"), up, [end, b, *given])[1]


def _samples() -> list[S]:
    plain = [S(Matrices(4, 4)), S(Matrices(2, 5, 5)), S(Matrices(1, 1))]
    return [*plain, S(Matrices(6, 6), hermitian=True), S(Matrices(3, 2, 2), hermitian=True)]


def _solve_samples() -> list[S]:
    whole = lambda size, *stack: (
        Matrices(*stack, size, size),
        pivot_rows(size, *stack, size),
        Matrices(*stack, size, 2),
    )
    return [S(*whole(4)), S(*whole(3, 2)), S(*whole(3), hermitian=True)]


@op(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    samples=_samples,
)
def linalg_ldl_factor_ex(x: Value, hermitian: bool, check_errors: bool) -> Any:
    """L below D in one matrix, the row that each was exchanged with, and 0 or where D has a zero."""
    check_matrices("ldl_factor", x, square=True)
    x = undifferentiable(x, "the matrix of ldl_factor")
    size = x.shape[-1]
    if not x.numel:
        pivots = flat.full(x.shape[:-1], 0, dtypes.int32)
        return x, pivots, flat.full(x.shape[:-2], 0, dtypes.int32)
    count = math.prod(x.shape[:-2])
    packed, pivots, info = _factored(flat.reshape(x, (count, size, size)), hermitian)
    packed, pivots = flat.reshape(packed, x.shape), flat.reshape(pivots, x.shape[:-1])
    info = flat.reshape(info, x.shape[:-2])
    if check_errors:
        packed = succeeded(packed, info, "ldl_factor: D has a zero on its diagonal, the matrix is singular")
    return packed, pivots, info


@op(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    samples=_samples,
)
def linalg_ldl_factor(x: Value, hermitian: bool) -> Any:
    """L below D in one matrix, and the row, counted from 1, that each was exchanged with: negative where two
    were taken together."""
    return linalg_ldl_factor_ex(x, hermitian, True)[:2]


@op(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    samples=_solve_samples,
    needs="pivots_of_rows<0, 1>",
)
def linalg_ldl_solve(factors: Value, pivots: Value, b: Value, hermitian: bool) -> Any:
    """The solution of A X = B, by the factors of A."""
    check_matrices("ldl_solve", factors, square=True)
    if b.rank < 2 or b.shape[-2] != factors.shape[-1]:
        raise ShapeError(f"ldl_solve: the rows of {b.type} are not those of the factors, {factors.type}")
    if b.dtype is not factors.dtype or pivots.dtype.kind != "int":
        raise DTypeError(
            f"ldl_solve takes matrices of one dtype and integer pivots, not {b.type}, {pivots.type}"
        )
    if pivots.shape != factors.shape[:-1]:
        raise ShapeError(f"the pivots {pivots.type} do not fit the factors {factors.type}")
    rows = flat.unsqueeze(flat.convert(pivots, dtypes.int32), pivots.rank)
    factors, b = (undifferentiable(each, "the matrices of ldl_solve") for each in (factors, b))
    factors, rows, b = stacked(factors, rows, b)
    if not b.numel:
        return b
    count, size = math.prod(b.shape[:-2]), b.shape[-2]
    flattened = [flat.reshape(each, (count, size, each.shape[-1])) for each in (factors, b)]
    solved = _solved(flattened[0], flat.reshape(rows, (count, size)), flattened[1], hermitian)
    return flat.reshape(solved, b.shape)
