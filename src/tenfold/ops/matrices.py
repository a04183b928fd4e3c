"""What the rows of linear algebra share: checks of arguments, triangular systems, orders of rows."""

from __future__ import annotations

from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, LinAlgError, ShapeError
from tenfold.flat import Value
from tenfold.flat.grad_products import adjoint, matmul, triangle
from tenfold.ops import lapack


def check_matrices(name: str, x: Value, square: bool = False) -> None:
    """Raise unless x is a stack of matrices of a dtype that LAPACK computes in."""
    if x.rank < 2:
        raise ShapeError(f"{name} takes a matrix or a stack of matrices, not {x.type}")
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, not {x.type}")
    if x.dtype not in lapack.PREFIXES:
        raise DTypeError(
            f"{name} is not defined for {x.dtype.name}", help="it takes float32, float64 and complex tensors"
        )


def check_pair(name: str, a: Value, b: Value) -> None:
    if a.dtype is not b.dtype:
        raise DTypeError(f"{name}: {a.type} and {b.type} differ in dtype", help="convert one with .to(dtype)")


def succeeded(x: Value, info: Value, message: str) -> Value:
    """x; reading a result raises where LAPACK did not succeed."""
    return flat.check(x, flat.eq(info, 0), LinAlgError, message)


def stacked(*values: Value) -> list[Value]:
    """Matrices with their stacks stretched to one shape."""
    batch = flat.broadcast_shapes(*[value.shape[:-2] for value in values])
    return [flat.broadcast_to(value, (*batch, *value.shape[-2:])) for value in values]


def diagonal(x: Value) -> Value:
    """The main diagonals of a stack of matrices."""
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    square = flat.slice(x, [0] * x.rank, (*x.shape[:-2], k, k))
    return flat.sum(on_diagonal(square, square), -1)


def on_diagonal(x: Value, square: Value) -> Value:
    """x where it is on the diagonal of matrices shaped like `square`, else 0."""
    row, column = flat.iota(square.shape, square.rank - 2), flat.iota(square.shape, square.rank - 1)
    return flat.where(flat.eq(row, column), x, 0)


def embedded(x: Value) -> Value:
    """Matrices with x on their diagonals."""
    rows = flat.unsqueeze(x, -1)
    square = flat.broadcast_to(rows, (*x.shape, x.shape[-1]))
    return on_diagonal(square, square)


def off_diagonal(x: Value, instead: Any) -> Value:
    """x with its diagonal replaced."""
    row, column = flat.iota(x.shape, x.rank - 2), flat.iota(x.shape, x.rank - 1)
    return flat.where(flat.eq(row, column), instead, x)


# Triangular systems


def _of_triangular(ct, x, a, b, left, lower, transposed="N", unit=False):
    """X = A⁻¹ b, A being a, its transpose or its adjoint: b's cotangent is A⁻ᴴ ct, and A's -A⁻ᴴ ct Xᴴ."""
    plain = flat.conj(a) if transposed == "T" else a
    by_b = solve_triangular(plain, ct, left, lower, {"N": "C", "T": "N", "C": "N"}[transposed], unit)

    def by_a():
        found = -(matmul(by_b, adjoint(x)) if left else matmul(adjoint(x), by_b))
        found = {"N": lambda each: each, "T": lambda each: flat.swap(each, -1, -2), "C": adjoint}[transposed](
            found
        )
        return triangle(found, lower, unit)

    return by_a, lambda: by_b


@flat.differentiated(_of_triangular)
def solve_triangular(a, b, left, lower, transposed="N", unit=False):
    """X of op(a) X = b, or of X op(a) = b; the stacks of a and b are the same. `transposed`: N, T or C."""
    return lapack.trsm(a, b, left, lower, transposed, unit)


# Orders of rows, which LAPACK gives as exchanges: each row with one that is not above it


def row_order(pivots: Value, rows: int) -> Value:
    """The order that the exchanges `pivots`, counted from 1, bring rows into."""
    *batch, count = pivots.shape
    size = 1
    for extent in batch:
        size *= extent
    place = flat.iota((size, rows), 1, dtypes.int32)
    if not size or not count:
        return flat.reshape(place, (*batch, rows))
    swaps = flat.reshape(pivots, (size, count)) - 1

    def step(i, order, swaps):
        other = flat.dynamic_slice(swaps, (0, i), (size, 1))
        here, there = flat.dynamic_slice(order, (0, i), (size, 1)), flat.take_along(order, other, 1)
        swapped = flat.where(flat.eq(place_again(), other), here, order)
        return i + 1, flat.where(flat.eq(place_again(), i), there, swapped), swaps

    def place_again():
        return flat.iota((size, rows), 1, dtypes.int32)

    carry = (flat.constant(0, dtypes.int32), place, swaps)
    order = flat.while_loop(lambda i, order, swaps: i < count, step, carry)[1]
    return flat.reshape(order, (*batch, rows))


def inverse_order(order: Value) -> Value:
    places = flat.iota(order.shape, order.rank - 1, order.dtype)
    return flat.sort((order, places), order.rank - 1, lambda a, b, i, j: a < b)[1]


def ordered_rows(x: Value, order: Value) -> Value:
    """The rows of matrices in another order."""
    if not x.numel:
        return x
    stack = tuple(range(x.rank - 2))
    numbers = flat.GatherDimensions((x.rank - 1,), (x.rank - 2,), (x.rank - 2,), x.rank - 1, stack, stack)
    return flat.gather(x, order, numbers, (*[1] * (x.rank - 1), x.shape[-1]))


def permutation_matrix(order: Value, dtype: dtypes.DType) -> Value:
    """P of A = P (A with its rows in this order)."""
    extent = order.shape[-1]
    row = flat.iota((*order.shape, extent), order.rank - 1, order.dtype)
    return flat.convert(flat.eq(row, flat.unsqueeze(order, -2)), dtype)
