"""Rows that factor matrices into triangles: Cholesky, LU, QR, and products of Householder reflections."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, UnsupportedError
from tenfold.flat.grad_products import adjoint, matmul, triangle
from tenfold.ops import lapack
from tenfold.ops.matrices import (
    check_matrices,
    check_pair,
    inverse_order,
    off_diagonal,
    on_diagonal,
    ordered_rows,
    permutation_matrix,
    row_order,
    solve_triangular,
    succeeded,
)
from tenfold.ops.samples import MATRICES, Matrices, S, T, pivot_rows
from tenfold.ops.table import op

_POSITIVE = [
    Matrices(3, 3, positive=True),
    Matrices(2, 2, 4, 4, positive=True),
    T(0, 0, dtype="float32"),
    T(0, 3, 3, dtype="float32"),
]


def _of_cholesky(cts, results, x, upper):
    """L⁻ᴴ F(Lᴴ ct) L⁻¹ / 2, where F makes a matrix of a lower triangle by adding its adjoint above."""
    factor, ct = (adjoint(results[0]), adjoint(cts[0])) if upper else (results[0], cts[0])
    inner = triangle(matmul(adjoint(factor), triangle(ct, True)), True)
    whole = inner + adjoint(triangle(inner, True, strict=True))
    right = solve_triangular(factor, whole, False, True)
    return (solve_triangular(factor, right, True, True, "C") * 0.5,)


@flat.differentiated(_of_cholesky)
def _cholesky(x, upper):
    factor, info = lapack.potrf(x, not upper)
    return triangle(factor, not upper), info


_NOT_POSITIVE = "cholesky: a matrix is not positive-definite, so it has no such factor"


@op(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) "
    "-> (Tensor L, Tensor info)",
    method=False,
    samples=lambda: [*[S(each) for each in _POSITIVE], S(_POSITIVE[0], upper=True, check_errors=True)],
    autocast="cpu: float32",
)
def linalg_cholesky_ex(x, upper, check_errors):
    """L of x = L Lᴴ, or U of x = Uᴴ U; and 0, or the order of the first minor that is not positive."""
    check_matrices("cholesky", x, square=True)
    factor, info = _cholesky(x, upper)
    return succeeded(factor, info, _NOT_POSITIVE) if check_errors else factor, info


@op(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    method=False,
    samples=lambda: [*[S(each) for each in _POSITIVE], S(_POSITIVE[1], upper=True)],
    autocast="cpu: float32",
)
@op(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    samples=lambda: [*[S(each) for each in _POSITIVE], S(_POSITIVE[1], True)],
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_cholesky(x, upper):
    """L of x = L Lᴴ, or U of x = Uᴴ U."""
    return linalg_cholesky_ex(x, upper, True)[0]


# LU: rows are exchanged, then a triangle with ones on its diagonal times an upper triangle


def _of_lu(cts, results, x):
    """The rows in their old order of L⁻ᴴ (F(Lᴴ ct_L - ct_U Uᴴ) U⁻ᴴ + ct_U), where F takes what is below
    the diagonal; and so on for what a matrix has beyond its square part."""
    packed, pivots, _ = results
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    unit, upper = unpacked(packed)
    low = flat.slice_dim(triangle(cts[0], True, strict=True), -1, 0, k)
    high = flat.slice_dim(triangle(cts[0], False), -2, 0, k)
    if rows <= columns:
        inner = triangle(matmul(adjoint(unit), low) - matmul(high, adjoint(upper)), True, strict=True)
        square = flat.slice_dim(upper, -1, 0, k)
        found = solve_triangular(square, inner, False, False, "C") + flat.slice_dim(high, -1, 0, k)
        found = flat.concatenate([found, flat.slice_dim(high, -1, k, columns)], x.rank - 1)
        found = solve_triangular(unit, found, True, True, "C", True)
    else:
        inner = triangle(matmul(high, adjoint(upper)) - matmul(adjoint(unit), low), False)
        square = flat.slice_dim(unit, -2, 0, k)
        found = solve_triangular(square, inner, True, True, "C", True) + flat.slice_dim(low, -2, 0, k)
        found = flat.concatenate([found, flat.slice_dim(low, -2, k, rows)], x.rank - 2)
        found = solve_triangular(upper, found, False, False, "C")
    return (ordered_rows(found, inverse_order(row_order(pivots, rows))),)


@flat.differentiated(_of_lu)
def lu_packed(x):
    """L and U in one matrix, the exchanges of rows, and LAPACK's info."""
    return lapack.getrf(x)


def unpacked(packed):
    """L, with its ones, and U."""
    rows, columns = packed.shape[-2:]
    k = min(rows, columns)
    low = flat.slice_dim(triangle(packed, True, strict=True), -1, 0, k)
    return off_diagonal(low, 1), flat.slice_dim(triangle(packed, False), -2, 0, k)


def _require_pivots(pivot):
    if not pivot:
        raise UnsupportedError(
            "LAPACK has no LU without exchanges of rows", help="leave pivot=True, or use linalg.qr"
        )


@op(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
    "-> (Tensor LU, Tensor pivots, Tensor info)",
    samples=lambda: [*[S(matrix) for matrix in MATRICES], S(MATRICES[0], check_errors=True)],
)
def linalg_lu_factor_ex(x, pivot, check_errors):
    """L below U in one matrix, the row that each row was exchanged with, and 0 or where U has a zero."""
    check_matrices("lu_factor", x)
    _require_pivots(pivot)
    packed, pivots, info = lu_packed(x)
    if check_errors:
        packed = succeeded(packed, info, "lu_factor: U has a zero on its diagonal, the matrix is singular")
    return packed, pivots, info


@op(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) "
    "-> (Tensor LU, Tensor pivots, Tensor info)",
    method=False,
    samples=lambda: [S(matrix) for matrix in MATRICES],
)
def lu_with_info(x, pivot, check_errors):
    """L below U in one matrix, the row that each row was exchanged with, and 0 or where U has a zero."""
    return linalg_lu_factor_ex(x, pivot, check_errors)


@op(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    samples=lambda: [S(matrix) for matrix in MATRICES],
)
def linalg_lu_factor(x, pivot):
    """L below U in one matrix, and the row, counted from 1, that each row was exchanged with."""
    return linalg_lu_factor_ex(x, pivot, True)[:2]


@op(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    differentiable=(False, True, True),
    samples=lambda: [S(matrix) for matrix in MATRICES],
)
def linalg_lu(x, pivot):
    """A = P L U: an order of rows, a lower triangle with ones on its diagonal, an upper triangle."""
    packed, pivots, _ = linalg_lu_factor_ex(x, pivot, False)
    return permutation_matrix(row_order(pivots, x.shape[-2]), x.dtype), *unpacked(packed)


def check_pivots(packed, pivots):
    """The pivots, if they are such as `linalg.lu_factor` gives."""
    if pivots.dtype is not dtypes.int32:
        raise DTypeError(f"pivots are int32, not {pivots.dtype.name}", help="pass those of linalg.lu_factor")
    if pivots.shape != (*packed.shape[:-2], min(packed.shape[-2:])):
        raise ShapeError(f"the pivots {pivots.type} do not fit the matrix {packed.type}")
    inside = (pivots >= 1) & (pivots <= packed.shape[-2])
    return flat.check(pivots, inside, IndexOutOfRange, "pivots are rows, counted from 1 to the last")


def _lu_samples():
    whole = lambda rows, *shape: S(Matrices(*shape), pivot_rows(rows, *shape[:-2], min(shape[-2:])))
    return [
        whole(4, 4, 4),
        whole(5, 2, 5, 3),
        whole(3, 3, 5),
        S(T(0, 3, 3, dtype="float32"), pivot_rows(3, 0, 3)),
    ]


@op(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    differentiable=(False, True, True),
    samples=lambda: [
        *_lu_samples(),
        S(Matrices(4, 4), pivot_rows(4, 4), False),
        S(Matrices(4, 4), pivot_rows(4, 4), True, False),
    ],
    needs="pivots",
)
def lu_unpack(packed, pivots, unpack_data, unpack_pivots):
    """P, L and U of what `linalg.lu_factor` gives; empty tensors for what is not asked for."""
    if packed.rank < 2:
        raise ShapeError(f"lu_unpack takes a matrix or a stack of matrices, not {packed.type}")
    nothing = flat.full((0,), 0, packed.dtype)
    order, low, high = nothing, nothing, nothing
    if unpack_pivots:
        order = permutation_matrix(row_order(check_pivots(packed, pivots), packed.shape[-2]), packed.dtype)
    if unpack_data:
        low, high = unpacked(packed)
    return order, low, high


# QR


def _of_qr(cts, results, x):
    """(ct_Q + Q H(ct_R Rᴴ - Qᴴ ct_Q)) R⁻ᴴ, where H makes a Hermitian matrix of an upper triangle. What a
    wide matrix has beyond its square part is Qᴴ of the same columns of x."""
    q, r = results
    rows, columns = x.shape[-2:]
    by_q = cts[0] if cts[0] is not None else flat.full_like(q, 0)
    by_r = cts[1] if cts[1] is not None else flat.full_like(r, 0)
    by_rest = None
    if rows < columns:
        rest = flat.slice_dim(x, -1, rows, columns)
        by_rest = flat.slice_dim(by_r, -1, rows, columns)
        by_q = by_q + matmul(rest, adjoint(by_rest))
        by_r, r = flat.slice_dim(by_r, -1, 0, rows), flat.slice_dim(r, -1, 0, rows)
        by_rest = matmul(q, by_rest)
    inner = triangle(matmul(by_r, adjoint(r)) - matmul(adjoint(q), by_q), False)
    middle = inner + adjoint(triangle(inner, False, strict=True))
    if x.dtype.is_complex:
        real = flat.convert(flat.real(middle), x.dtype)
        middle = middle - on_diagonal(middle, middle) + on_diagonal(real, middle)
    found = solve_triangular(r, by_q + matmul(q, middle), False, False, "C")
    return (found if by_rest is None else flat.concatenate([found, by_rest], x.rank - 1),)


@flat.differentiated(_of_qr)
def _qr_reduced(x):
    packed, tau = lapack.geqrf(x)
    k = min(x.shape[-2:])
    q = lapack.orgqr(flat.slice_dim(packed, -1, 0, k), tau)
    return q, flat.slice_dim(triangle(packed, False), -2, 0, k)


def _refuse_r(cts, result, x):
    raise UnsupportedError(
        "the derivative of qr needs Q, which mode='r' leaves out", help="use mode='reduced'"
    )


@flat.differentiated(_refuse_r)
def _qr_upper(x):
    packed, _ = lapack.geqrf(x)
    return flat.slice_dim(triangle(packed, False), -2, 0, min(x.shape[-2:]))


def _refuse_complete(cts, results, x):
    raise UnsupportedError(
        "qr has no derivative where mode='complete' adds columns to Q", help="use mode='reduced'"
    )


@flat.differentiated(_refuse_complete)
def _qr_complete(x):
    packed, tau = lapack.geqrf(x)
    rows, columns = x.shape[-2:]
    blank = flat.full((*x.shape[:-2], rows, rows - columns), 0, x.dtype)
    q = lapack.orgqr(flat.concatenate([packed, blank], x.rank - 1), tau)
    return q, triangle(packed, False)


@op(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    samples=lambda: [S(matrix, mode) for mode in ("reduced", "complete", "r") for matrix in MATRICES],
    autocast="cpu: float32",
    saves="other",
)
def linalg_qr(x, mode):
    """A = Q R: orthonormal columns times an upper triangle."""
    check_matrices("qr", x)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"unknown mode {mode!r}", help="reduced, complete or r")
    if mode == "r":
        return flat.full((0,), 0, x.dtype), _qr_upper(x)
    if mode == "complete" and x.shape[-2] > x.shape[-1]:
        return _qr_complete(x)
    return _qr_reduced(x)


@op(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    samples=lambda: [S(matrix, some) for some in (True, False) for matrix in MATRICES],
    autocast="cpu: float32",
    saves="other",
)
def qr(x, some):
    """A = Q R: orthonormal columns times an upper triangle."""
    return linalg_qr(x, "reduced" if some else "complete")


def _refuse_geqrf(cts, results, x):
    raise UnsupportedError("there is no derivative of geqrf", help="use linalg.qr")


@op(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    samples=lambda: [S(matrix) for matrix in MATRICES],
    autocast="cpu: float32",
)
@flat.differentiated(_refuse_geqrf)
def geqrf(x):
    """R above the Householder vectors of Q, and their scales."""
    check_matrices("geqrf", x)
    return lapack.geqrf(x)


def _vectors(name, x, tau):
    """The vectors below the diagonal, ones on it, and T of H₁ H₂ … = 1 - V T Vᴴ."""
    check_matrices(name, x)
    check_pair(name, x, tau)
    count = tau.shape[-1] if tau.rank else -1
    if not 0 <= count <= min(x.shape[-2:]) or tau.shape[:-1] != x.shape[:-2]:
        raise ShapeError(f"{name}: scales {tau.type} do not fit the vectors {x.type}")
    vectors = off_diagonal(triangle(flat.slice_dim(x, -1, 0, count), True, strict=True), 1)
    # T (1 + S D) = D, where D holds the scales and S what VᴴV has above its diagonal.
    scales = flat.unsqueeze(tau, -2)
    above = triangle(matmul(adjoint(vectors), vectors), False, strict=True) * scales
    identity = lapack.identity(above, count)
    inverse = solve_triangular(identity + above, identity, True, False, "N", True)
    return vectors, inverse * flat.unsqueeze(tau, -1)


_SCALES = lambda *shape: T(*shape, low=0, high=2)  # what LAPACK makes; beyond, products only grow
_REFLECTIONS = lambda: [
    S(Matrices(4, 3), _SCALES(3)), S(Matrices(2, 4, 4), _SCALES(2, 2)),
    S(T(3, 0, dtype="float32"), T(0, dtype="float32")),
]  # fmt: skip


@op(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    samples=_REFLECTIONS,
    autocast="cpu: float32",
    casts_out=True,
)
@op(
    "orgqr(Tensor self, Tensor input2) -> Tensor",
    samples=_REFLECTIONS,
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_householder_product(x, tau):
    """The first columns of H₁ H₂ …, where Hᵢ = 1 - tau[i] v vᴴ, and v is column i below the diagonal."""
    vectors, inner = _vectors("householder_product", x, tau)
    rows, columns = x.shape[-2:]
    if rows < columns:
        raise ShapeError(f"householder_product: a matrix has at least as many rows as columns, not {x.type}")
    whole = flat.slice_dim(lapack.identity(x, rows), -1, 0, columns)
    top = flat.slice_dim(adjoint(vectors), -1, 0, columns)
    return whole - matmul(matmul(vectors, inner), top)


@op(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    samples=lambda: (
        [S(Matrices(4, 3), _SCALES(3), Matrices(4, 2), True, transpose) for transpose in (False, True)]
        + [S(Matrices(2, 4, 3), _SCALES(2, 3), Matrices(2, 5, 4), False, each) for each in (False, True)]
        + [S(Matrices(2, 5), _SCALES(2), Matrices(2, 3)), S(T(0, 2), T(0), T(0, 2))]
        + [S(T(4, 3), _SCALES(2), T(4, 2))]
    ),
    autocast="cpu: float32",
)
def ormqr(x, tau, other, left, transpose):
    """Q · other, or other · Q, or with Q's adjoint, of the Q that Householder vectors stand for."""
    check_pair("ormqr", x, other)
    vectors, inner = _vectors("ormqr", x, tau)
    if (
        other.rank != x.rank
        or other.shape[:-2] != x.shape[:-2]
        or other.shape[-2 if left else -1] != x.shape[-2]
        or tau.shape[-1] != min(x.shape[-2:])
    ):
        raise ShapeError(f"ormqr: {other.type} does not fit the vectors {x.type}")
    inner = adjoint(inner) if transpose else inner
    if left:
        return other - matmul(matmul(vectors, inner), matmul(adjoint(vectors), other))
    return other - matmul(matmul(other, vectors), matmul(inner, adjoint(vectors)))
