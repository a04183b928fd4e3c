"""Rows about triangles and diagonals of matrices, and choices of elements, which are triangles of places."""

import itertools

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.ops.samples import S, T
from tenfold.ops.strided import diagonal
from tenfold.ops.table import op, written


def _triangles():
    return [
        S(T(3, 4)),
        S(T(3, 4), 1),
        S(T(4, 3), -1),
        S(T(2, 3, 3)),
        S(T(3, 3), 9),
        S(T(3, 3), -9),
        S(T(0, 3)),
        S(T(3, 4), 2**63 - 1),
        S(T(3, 4), 1 - 2**63),
    ]


def _above(x):
    """How far each element lies to the right of the main diagonal. It is compared with the number of another:
    their difference could exceed 64 bits."""
    if x.rank < 2:
        raise ShapeError(f"expected a matrix or a batch of matrices, not {x.type}")
    return flat.iota(x.shape[-2:], 1) - flat.iota(x.shape[-2:], 0)


@op("tril(Tensor self, SymInt diagonal=0) -> Tensor", inplace=True, samples=_triangles)
def tril(x, diagonal):
    """x[i, j] where j - i <= diagonal, else 0."""
    return flat.where(_above(x) <= diagonal, x, 0)


@op("triu(Tensor self, SymInt diagonal=0) -> Tensor", inplace=True, samples=_triangles)
def triu(x, diagonal):
    """x[i, j] where j - i >= diagonal, else 0."""
    return flat.where(_above(x) >= diagonal, x, 0)


def _trapezoids():
    return [
        S(3, 4),
        S(4, 3),
        S(3, 3, 1),
        S(5, 3, -2),
        S(3, 3, 9),
        S(3, 3, -9),
        S(0, 3),
        S(6, 9, 2),
        S(300, 200, -7),
    ]


@op(
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    samples=_trapezoids,
    positions="-> 0",
)
def tril_indices(row, col, offset, dtype):
    """Rows and columns of the elements on and below a diagonal, in row-major order."""
    return _converted(_lower(row, col, offset), dtype)


@op(
    "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    samples=_trapezoids,
    positions="-> 0",
)
def triu_indices(row, col, offset, dtype):
    """Rows and columns of the elements on and above a diagonal, in row-major order."""
    # Turned by half a circle, the upper triangle is a lower one, read backwards.
    rows, columns = _lower(row, col, col - row - offset)
    turned = [flat.reverse(last - each, (0,)) for each, last in ((rows, row - 1), (columns, col - 1))]
    return _converted(turned, dtype)


def _converted(pair, dtype):
    if dtype is not None and dtype.kind != "int":
        raise ArgumentError(f"indices are integers, not {dtype.name}")
    return flat.convert(
        flat.concatenate([flat.unsqueeze(each, 0) for each in pair], 0), dtype or dtypes.int64
    )


def _lower(row, col, offset):
    """Rows of first, first + 1, ... elements, then rows of `col`: where the k-th element of all lies."""
    if row < 0 or col < 0:
        raise ArgumentError(f"a matrix cannot have {row} rows and {col} columns")
    top = min(max(-offset, 0), row)  # rows above are empty
    first = min(top + offset + 1, col)
    growing = min(max(col - first, 0), row - top) if first > 0 else 0
    slanted = growing * first + growing * (growing - 1) // 2
    full = (row - top - growing) * col
    k = flat.arange(slanted)
    # m rows of the slanted part hold first * m + m * (m - 1) / 2 elements: solve for m, mend the rounding.
    b = 2 * first - 1
    guess = flat.sqrt(flat.convert(k * 8 + b * b, dtypes.float64))
    m = flat.convert(flat.floor((guess - float(b)) / 2.0), dtypes.int64)

    def held(m):
        return m * first + flat.div(m * (m - 1), 2)

    m = flat.where(held(m) > k, m - 1, m)
    m = flat.where(held(m + 1) <= k, m + 1, m)
    rest = flat.arange(full)
    rows = [m + top, flat.div(rest, max(col, 1)) + (top + growing)]
    return flat.concatenate(rows, 0), flat.concatenate([k - held(m), flat.rem(rest, max(col, 1))], 0)


# Diagonals


def _embedded():
    return [S(T(3)), S(T(3), 1), S(T(3), -2), S(T(2, 3)), S(T(2, 3), 1, 0, 2), S(T(2, 3), 0, -1, 0), S(T(0))]


@op("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", samples=_embedded)
def diag_embed(x, offset, dim1, dim2):
    """The last dimension on a diagonal of two new ones, zeros elsewhere."""
    if not x.rank:
        raise ShapeError("diag_embed: a zero-dimensional tensor has no dimension to embed")
    first, second = flat.axis(dim1, x.rank + 1), flat.axis(dim2, x.rank + 1)
    if first == second:
        raise ShapeError(f"diag_embed: the dimensions {dim1} and {dim2} are the same")
    side = x.shape[-1] + abs(offset)
    low, high = [0] * x.rank, [0] * x.rank
    low[-1], high[-1] = max(-offset, 0), max(offset, 0)
    rows = flat.unsqueeze(flat.pad(x, low, high), -1)
    spread = flat.broadcast_to(rows, (*x.shape[:-1], side, side))
    on = flat.eq(flat.iota((side, side), 0) + offset, flat.iota((side, side), 1))
    placed = flat.where(on, spread, 0)
    order = list(range(x.rank - 1))
    for dim, source in sorted([(first, x.rank - 1), (second, x.rank)]):
        order.insert(dim, source)
    return flat.transpose(placed, order)


@op(
    "diag(Tensor self, int diagonal=0) -> Tensor",
    samples=lambda: [S(T(3)), S(T(3), -1), S(T(3, 4)), S(T(3, 4), 2), S(T(0, 3))],
    late=written,
)
def diag(x, offset):
    """A matrix with x on its diagonal, or the diagonal of a matrix."""
    if x.rank not in (1, 2):
        raise ShapeError(f"diag takes a vector or a matrix, not {x.type}")
    return diag_embed(x, offset, 0, 1) if x.rank == 1 else diagonal(x, offset, 0, 1)


@op("diagflat(Tensor self, int offset=0) -> Tensor", samples=lambda: [S(T(3)), S(T(2, 2), 1), S(T(), -1)])
def diagflat(x, offset):
    """A matrix with all of x, as one row, on its diagonal."""
    return diag_embed(flat.reshape(x, (x.numel,)), offset, 0, 1)


@op(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(4)),
        S(T(4), 3),
        S(T(4), 2, True),
        S(T(4), 1),
        S(T(4), 0),
        S(T(2), 3),
        S(T(3), 3, True),
        S(T(0)),
    ],
)
def combinations(x, r, with_replacement):
    """Every way to choose r elements of a vector, one way a row."""
    if x.rank != 1:
        raise ShapeError(f"combinations: expected a vector, not {x.type}")
    if r < 0:
        raise ArgumentError(f"combinations: cannot choose {r} elements")
    if r == 0:
        return flat.stop_gradient(flat.full((0,), 0, x.dtype))
    if not x.numel:
        return flat.full((0, r), 0, x.dtype)
    if r == 2:
        chosen = flat.swap(triu_indices(x.numel, x.numel, 0 if with_replacement else 1, None), 0, 1)
    else:
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        ways = list(choose(range(x.numel), r))
        if not ways:
            return flat.full((0, r), 0, x.dtype)
        chosen = flat.constant(ways, dtypes.int64)
    return flat.take(x, chosen, 0)
