"""Rows that solve linear systems, invert matrices, and their determinants: all by one LU factorization."""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.flat.grad_products import adjoint, matmul
from tenfold.ops import lapack
from tenfold.ops.factors import check_pivots, lu_packed
from tenfold.ops.matrices import (
    check_matrices,
    check_pair,
    diagonal,
    embedded,
    inverse_order,
    off_diagonal,
    ordered_rows,
    row_order,
    solve_triangular,
    stacked,
    succeeded,
)
from tenfold.ops.samples import Matrices, S, T
from tenfold.ops.table import op


def _of_solved(ct, result, a, packed, order, b, adjoined):
    """X = A⁻¹ b: b's cotangent is A⁻ᴴ ct, and A's -A⁻ᴴ ct Xᴴ. The factors serve again."""
    by_b = solved(a, packed, order, ct, not adjoined)

    def by_a():
        return -(matmul(result, adjoint(by_b)) if adjoined else matmul(by_b, adjoint(result)))

    return by_a, None, None, lambda: by_b


@flat.differentiated(_of_solved)
def solved(a, packed, order, b, adjoined):
    """X of a X = b, or of aᴴ X = b, given a's factors; the stacks are the same."""
    if adjoined:
        inner = lapack.trsm(packed, b, True, False, "C", False)
        return ordered_rows(lapack.trsm(packed, inner, True, True, "C", True), inverse_order(order))
    inner = lapack.trsm(packed, ordered_rows(b, order), True, True, "N", True)
    return lapack.trsm(packed, inner, True, False, "N", False)


def solve_matrices(a, b):
    """X of a X = b, for stacks of one shape; without a check of what is singular."""
    packed, pivots, _ = lu_packed(a)
    return solved(a, packed, row_order(pivots, a.shape[-1]), b, False)


def is_vector(a, b):
    """Whether b is a vector for each of the matrices, or one for all."""
    return b.rank == 1 or (b.rank == a.rank - 1 and b.shape == a.shape[:-1])


def _systems():
    return [
        S(Matrices(3, 3), T(3, 2)),
        S(Matrices(2, 3, 3), T(2, 3)),
        S(Matrices(2, 3, 3), T(3)),
        S(Matrices(2, 1, 3, 3), T(4, 3, 2)),
        S(Matrices(3, 3), T(2, 3), left=False),
        S(T(0, 0, dtype="float32"), T(0, 2, dtype="float32")),
        S(T(3, 3, low=2, high=2.5), T(4)),
    ]


@op(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
    "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    differentiable=(True, False, False, False),
    samples=_systems,
)
def linalg_solve_internal(a, b, left, check_errors):
    """X of A X = B, or of X A = B; A's factors; and 0, or where U has a zero."""
    check_matrices("solve", a, square=True)
    check_pair("solve", a, b)
    if not b.rank:
        raise ShapeError(f"solve: the right side is a vector or a matrix, not {b.type}")
    vector = is_vector(a, b)
    if vector and not left:
        raise ArgumentError("solve: vectors stand on the right side of A", help="leave left=True")
    right = flat.unsqueeze(b, -1) if vector else b
    if right.shape[-2 if left else -1] != a.shape[-1]:
        raise ShapeError(f"solve: {b.type} does not fit the matrix {a.type}")
    packed, pivots, info = lu_packed(a)
    batch = flat.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    if check_errors:
        packed = succeeded(packed, info, "solve: a matrix is singular, the system has no single solution")
    whole, factors = stacked(a, packed, flat.full((*batch, 1, 1), 0, a.dtype))[:2]
    order = flat.broadcast_to(row_order(pivots, a.shape[-1]), (*batch, a.shape[-1]))
    right = flat.broadcast_to(right, (*batch, *right.shape[-2:]))
    if left:
        found = solved(whole, factors, order, right, False)
    else:
        found = adjoint(solved(whole, factors, order, adjoint(right), True))
    return flat.squeeze(found, -1) if vector else found, packed, pivots, info


@op(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
    "-> (Tensor result, Tensor info)",
    samples=_systems,
)
def linalg_solve_ex(a, b, left, check_errors):
    """X of A X = B, or of X A = B; and 0, or where a singular matrix stopped it."""
    found, _, _, info = linalg_solve_internal(a, b, left, check_errors)
    return found, info


@op(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", samples=_systems, autocast="cpu: float32"
)
def linalg_solve(a, b, left):
    """X of A X = B, or of X A = B."""
    return linalg_solve_internal(a, b, left, True)[0]


_SQUARE = lambda: [
    S(Matrices(3, 3)), S(Matrices(2, 2, 4, 4)), S(T(0, 0, dtype="float32")), S(T(0, 3, 3, dtype="float32")),
]  # fmt: skip


@op(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    samples=lambda: [*_SQUARE(), S(Matrices(3, 3), check_errors=True)],
    autocast="cpu: float32",
)
def linalg_inv_ex(a, check_errors):
    """The inverse; and 0, or where a singular matrix stopped it."""
    check_matrices("inv", a, square=True)
    packed, pivots, info = lu_packed(a)
    identity = lapack.identity(a, a.shape[-1])
    found = solved(a, packed, row_order(pivots, a.shape[-1]), identity, False)
    return succeeded(
        found, info, "inv: a matrix is singular, it has no inverse"
    ) if check_errors else found, info


@op(
    "linalg_inv(Tensor A) -> Tensor", samples=_SQUARE, autocast="cpu: float32", grad_fn="LinalgInvExBackward0"
)
@op(
    "inverse(Tensor self) -> Tensor", samples=_SQUARE, autocast="cpu: float32", grad_fn="LinalgInvExBackward0"
)
def linalg_inv(a):
    """The inverse of square matrices."""
    return linalg_inv_ex(a, True)[0]


# With factors that are there already


def _factored():
    pivots = lambda *shape: T(*shape, dtype="int32", low=1, high=4)
    return [
        S(Matrices(3, 3), pivots(3), T(3, 2)),
        S(Matrices(2, 3, 3), pivots(2, 3), T(3, 2), adjoint=True),
        S(Matrices(2, 3, 3), pivots(2, 3), T(4, 3), left=False),
        S(Matrices(3, 3), pivots(3), T(2, 4, 3), left=False, adjoint=True),
    ]


@op(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    samples=_factored,
    needs="pivots_of_rows<0, 1>",
)
def linalg_lu_solve(packed, pivots, b, left, adjoined):
    """X of A X = B, or of X A = B, or with A's adjoint, by A's factors from `linalg.lu_factor`."""
    check_matrices("lu_solve", packed, square=True)
    check_matrices("lu_solve", b)
    check_pair("lu_solve", packed, b)
    if b.shape[-2 if left else -1] != packed.shape[-1]:
        raise ShapeError(f"lu_solve: {b.type} does not fit the factors {packed.type}")
    order = row_order(check_pivots(packed, pivots), packed.shape[-1])
    if not left:
        return adjoint(_by_factors(packed, order, adjoint(b), not adjoined))
    return _by_factors(packed, order, b, adjoined)


def _by_factors(packed, order, b, adjoined):
    packed, b = stacked(packed, b)
    order = flat.broadcast_to(order, (*packed.shape[:-2], order.shape[-1]))
    if adjoined:
        inner = solve_triangular(packed, b, True, False, "C")
        return ordered_rows(solve_triangular(packed, inner, True, True, "C", True), inverse_order(order))
    inner = solve_triangular(packed, ordered_rows(b, order), True, True, "N", True)
    return solve_triangular(packed, inner, True, False)


@op(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    samples=lambda: [S(T(3, 2), Matrices(3, 3), T(3, dtype="int32", low=1, high=4))],
    autocast="cpu: float32",
    needs="pivots_of_rows<1, 2>",
)
def lu_solve(b, packed, pivots):
    """X of A X = b, by A's factors from `linalg.lu_factor`."""
    return linalg_lu_solve(packed, pivots, b, True, False)


@op(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor",
    method=False,
    samples=lambda: [
        S(Matrices(3, 3), T(3, 2), upper=True),
        S(Matrices(2, 3, 3), T(2, 3, 2), upper=False),
        S(Matrices(3, 3), T(2, 4, 3), upper=True, left=False),
        S(Matrices(2, 3, 3), T(3, 2), upper=False, unitriangular=True),
        S(T(0, 0, dtype="float32"), T(0, 2, dtype="float32"), upper=True),
    ],
)
def linalg_solve_triangular(a, b, upper, left, unitriangular):
    """X of A X = B, or of X A = B, of which one triangle of A is read."""
    check_matrices("solve_triangular", a, square=True)
    check_pair("solve_triangular", a, b)
    check_matrices("solve_triangular", b)
    if b.shape[-2 if left else -1] != a.shape[-1]:
        raise ShapeError(f"solve_triangular: {b.type} does not fit the matrix {a.type}")
    a, b = stacked(a, b)
    return solve_triangular(a, b, left, not upper, "N", unitriangular)


@op(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
    "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    differentiable=(True, True),
    samples=lambda: [
        S(T(3, 2), Matrices(3, 3)),
        S(T(2, 3, 2), Matrices(3, 3), False),
        S(T(3, 2), Matrices(2, 3, 3), True, True),
        S(T(3, 2), Matrices(3, 3), False, True, True),
    ],
    autocast="cpu: float32",
    needs="solved_triangle",
)
def triangular_solve(b, a, upper, transpose, unitriangular):
    """X of A X = b, or of Aᵀ X = b, of which one triangle of A is read; and A."""
    check_matrices("triangular_solve", a, square=True)
    check_pair("triangular_solve", a, b)
    check_matrices("triangular_solve", b)
    if b.shape[-2] != a.shape[-1]:
        raise ShapeError(f"triangular_solve: {b.type} does not fit the matrix {a.type}")
    a, b = stacked(a, b)
    return solve_triangular(a, b, True, not upper, "T" if transpose else "N", unitriangular), a


@op(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    samples=lambda: [
        S(T(3, 2), Matrices(3, 3)),
        S(T(2, 3, 2), Matrices(3, 3), True),
        S(T(3, 2), Matrices(2, 3, 3)),
        S(T(0, 2, dtype="float32"), T(0, 0, dtype="float32")),
    ],
    autocast="cpu: float32",
    casts_out=True,
)
def cholesky_solve(b, factor, upper):
    """X of A X = b, given the Cholesky factor of A."""
    check_matrices("cholesky_solve", factor, square=True)
    check_pair("cholesky_solve", factor, b)
    check_matrices("cholesky_solve", b)
    if b.shape[-2] != factor.shape[-1]:
        raise ShapeError(f"cholesky_solve: {b.type} does not fit the factor {factor.type}")
    factor, b = stacked(factor, b)
    return _cholesky_solved(b, factor, upper)


def _of_cholesky_solved(ct, result, b, factor, upper):
    """b's cotangent is A⁻¹ ct, that of A = L Lᴴ is Z = -A⁻¹ ct Xᴴ, and the factor's (Z + Zᴴ) L: not of its
    triangle alone."""
    by_b = _cholesky_solved(ct, factor, upper)

    def by_factor():
        both = matmul(by_b, adjoint(result))
        both = -(both + adjoint(both))
        return matmul(factor, both) if upper else matmul(both, factor)

    return lambda: by_b, by_factor


@flat.differentiated(_of_cholesky_solved)
def _cholesky_solved(b, factor, upper):
    first, second = ("C", "N") if upper else ("N", "C")
    inner = lapack.trsm(factor, b, True, not upper, first, False)
    return lapack.trsm(factor, inner, True, not upper, second, False)


@op(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    samples=lambda: [
        S(Matrices(3, 3, positive=True)),
        S(Matrices(2, 4, 4, positive=True), True),
        S(T(0, 0, dtype="float32")),
    ],
    autocast="cpu: float32",
    saves="other",
    casts_out=True,
)
def cholesky_inverse(factor, upper):
    """The inverse of A, given its Cholesky factor."""
    check_matrices("cholesky_inverse", factor, square=True)
    return cholesky_solve(lapack.identity(factor, factor.shape[-1]), factor, upper)


# Determinants


def _parity(pivots):
    """1 or -1: whether an even number of rows was exchanged."""
    places = flat.iota(pivots.shape, pivots.rank - 1, dtypes.int32) + 1
    return flat.reduce(flat.where(flat.eq(pivots, places), flat.full_like(pivots, 1), -1), "mul", -1)


def _whole(packed):
    """The factors with 1 for each zero on U's diagonal: a determinant of zero has a gradient of zeros."""
    on = diagonal(packed)
    return off_diagonal(packed, flat.unsqueeze(flat.where(flat.eq(on, 0), 1, on), -1))


_TRANSPOSED = "PyTorch factors the transpose of a real matrix, where it lies so in memory"


def _of_det(ct, result, a, packed, pivots):
    """conj(det) · A⁻ᴴ."""
    if a.shape[-1] == 1:  # the determinant is the only element, be it zero
        return flat.broadcast_to(flat.unsqueeze(flat.unsqueeze(ct, -1), -1), a.shape), None, None
    order = row_order(pivots, a.shape[-1])
    scale = flat.broadcast_to(flat.unsqueeze(ct * flat.conj(result), -1), a.shape[:-1])
    return solved(a, _whole(packed), order, embedded(scale), True), None, None


@flat.differentiated(_of_det)
def _det(a, packed, pivots):
    return flat.reduce(diagonal(packed), "mul", -1) * flat.convert(_parity(pivots), a.dtype)


@op(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    differentiable=(True, False, False),
    differs=_TRANSPOSED,
    samples=_SQUARE,
)
def linalg_det_internal(a):
    """The determinant, and the factors that it was computed from."""
    check_matrices("det", a, square=True)
    packed, pivots, _ = lu_packed(a)
    return _det(a, packed, pivots), packed, pivots


@op("linalg_det(Tensor A) -> Tensor", samples=_SQUARE)
@op(
    "det(Tensor self) -> Tensor",
    samples=_SQUARE,
    grad_fn="LinalgDetBackward0",
    torch_dialect="linalg_det(self)",
)
def linalg_det(a):
    """The determinant of square matrices."""
    return linalg_det_internal(a)[0]


def _of_slogdet(cts, results, a, packed, pivots):
    """A⁻ᴴ times ct_logabsdet - i im(conj(ct_sign) sign)."""
    scale = flat.full(a.shape[:-2], 0, a.dtype)
    if cts[1] is not None:
        scale = flat.convert(cts[1], a.dtype)
    if cts[0] is not None and a.dtype.is_complex:
        turn = flat.imag(flat.conj(cts[0]) * results[0])
        scale = scale + flat.complex(flat.full_like(turn, 0), -turn)
    order = row_order(pivots, a.shape[-1])
    spread = flat.broadcast_to(flat.unsqueeze(scale, -1), a.shape[:-1])
    return solved(a, packed, order, embedded(spread), True), None, None


@flat.differentiated(_of_slogdet)
def _slogdet(a, packed, pivots):
    on = diagonal(packed)
    sign = flat.reduce(flat.sign(on), "mul", -1) * flat.convert(_parity(pivots), a.dtype)
    return sign, flat.sum(flat.log(flat.abs(on)), -1)


@op(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    differentiable=(True, True, False, False),
    differs=_TRANSPOSED,
    samples=_SQUARE,
)
def linalg_slogdet_internal(a):
    """The sign and the logarithm of the size of the determinant, and the factors."""
    check_matrices("slogdet", a, square=True)
    packed, pivots, _ = lu_packed(a)
    return (*_slogdet(a, packed, pivots), packed, pivots)


@op("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", samples=_SQUARE)
@op("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", samples=_SQUARE)
def linalg_slogdet(a):
    """The sign of the determinant and the logarithm of its size, which does not overflow."""
    return linalg_slogdet_internal(a)[:2]


@op("logdet(Tensor self) -> Tensor", samples=_SQUARE)
def logdet(a):
    """The logarithm of the determinant; NaN where that is negative."""
    sign, size = linalg_slogdet(a)
    if a.dtype.is_complex:
        return flat.log(sign) + flat.convert(size, a.dtype)
    return flat.where(flat.eq(sign, -1), math.nan, size)
