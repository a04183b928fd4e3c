"""Rows of functions of matrices: pseudo-inverses and least squares, powers, exponentials, tensor systems."""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat.grad_products import adjoint, matmul
from tenfold.ops import contraction, lapack
from tenfold.ops.matrices import check_matrices, check_pair, stacked
from tenfold.ops.matrix_norms import significant, tolerances
from tenfold.ops.samples import Matrices, S, T
from tenfold.ops.solving import is_vector, linalg_inv, linalg_solve, solve_matrices
from tenfold.ops.spectra import linalg_eigh, linalg_svd
from tenfold.ops.statistics import squared
from tenfold.ops.table import op


def _of_pinv(ct, p, a, atol, rtol, hermitian):
    """-Pᴴ ct Pᴴ + (1 - A P) ctᴴ P Pᴴ + Pᴴ P ctᴴ (1 - P A), of a pseudo-inverse P."""
    p_, ct_ = adjoint(p), adjoint(ct)
    first = -matmul(matmul(p_, ct), p_)
    over = matmul(matmul(ct_, p), p_)
    under = matmul(p_, matmul(p, ct_))
    found = first + over - matmul(a, matmul(p, over)) + under - matmul(matmul(under, p), a)
    return found, None, None


@flat.differentiated(_of_pinv)
def _pinv(x, atol, rtol, hermitian):
    rows, columns = x.shape[-2:]
    if not x.numel:
        return flat.full((*x.shape[:-2], columns, rows), 0, x.dtype)
    if hermitian:
        values, u = linalg_eigh(x, "L")
        vh = adjoint(u)
        sizes = flat.abs(values)
    else:
        u, values, vh = linalg_svd(x, False, None)
        sizes = values
    kept = significant(sizes, atol, rtol)
    values = flat.broadcast_to(values, kept.shape)
    inverse = flat.where(kept, 1.0 / flat.where(kept, values, 1.0), 0)
    vh, u, inverse = stacked(vh, u, flat.unsqueeze(inverse, -2))
    return matmul(adjoint(vh) * flat.convert(inverse, x.dtype), adjoint(u))


_PSEUDO = lambda: [
    S(Matrices(3, 4)), S(Matrices(2, 4, 3)), S(T(2, 3, 0, dtype="float32")),
]  # fmt: skip


@op(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False) -> Tensor",
    method=False,
    samples=lambda: [*_PSEUDO(), S(Matrices(2, 4, 3), atol=T(2, dtype="float32", low=0.1, high=0.2))],
    casts_out=True,
)
@op(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
    "bool hermitian=False) -> Tensor",
    method=False,
    samples=lambda: [
        *_PSEUDO(),
        S(Matrices(3, 4), atol=0.1),
        S(Matrices(3, 4), rtol=0.01, atol=0.1),
        S(Matrices(3, 3, positive=True), hermitian=True),
    ],
    casts_out=True,
)
def linalg_pinv(x, atol, rtol, hermitian):
    """V · diag(1 / S) · Uᴴ, without singular values up to max(atol, rtol · the largest)."""
    check_matrices("pinv", x, square=hermitian)
    return _pinv(x, *tolerances(x, atol, rtol), hermitian)


@op(
    "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
    method=False,
    samples=lambda: [S(Matrices(3, 4), 0.01), S(Matrices(2, 3, 3, positive=True), 1e-3, True)],
    casts_out=True,
)
@op(
    "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
    method=False,
    samples=lambda: [S(Matrices(3, 4), T(dtype="float32", low=0.01, high=0.02))],
    casts_out=True,
)
def linalg_pinv_relative(x, rcond, hermitian):
    """The pseudo-inverse, without singular values up to rcond · the largest."""
    return linalg_pinv(x, 0.0, rcond, hermitian)


@op(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    samples=lambda: [*_PSEUDO(), S(Matrices(3, 4), 0.01)],
    autocast="cpu: float32",
)
def pinverse(x, rcond):
    """The pseudo-inverse, without singular values up to rcond · the largest."""
    return linalg_pinv(x, 0.0, rcond, False)


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@op(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
    "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    method=False,
    differentiable=(True, True, False, False),
    samples=lambda: [
        S(Matrices(4, 3), T(4, 2)),
        S(Matrices(3, 4), T(3, 2)),
        S(Matrices(2, 4, 3), T(2, 4)),
        S(Matrices(4, 3), T(4)),
        *[S(Matrices(2, 4, 3), T(1, 4, 2), driver=each) for each in DRIVERS],
        *[S(Matrices(3, 4), T(3, 2), 0.01, driver=each) for each in DRIVERS],
    ],
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_lstsq(a, b, rcond, driver):
    """The X of least norm among those that minimize the norm of A X - B. By driver also: the squares left
    over ("gels", "gelsd", "gelss", of more rows than columns, whatever the rank), the rank (not "gels"), the
    singular values ("gelsd", "gelss")."""
    check_matrices("lstsq", a)
    check_pair("lstsq", a, b)
    driver = "gelsy" if driver is None else driver
    if driver not in DRIVERS:
        raise ArgumentError(f"unknown driver {driver!r}", help=f"one of {', '.join(DRIVERS)}")
    vector = is_vector(a, b)
    right = flat.unsqueeze(b, -1) if vector else b
    if right.rank < 2 or right.shape[-2] != a.shape[-2]:
        raise ShapeError(f"lstsq: {b.type} does not fit the matrix {a.type}")
    rows, columns = a.shape[-2:]
    atol, rtol = tolerances(a, None, _cutoff(driver, rcond, a.dtype))
    inverse, right = stacked(_pinv(a, atol, rtol, False), right)
    solution = matmul(inverse, right)
    none = flat.full((0,), 0, a.dtype.to_real())
    residuals, rank, values = none, flat.full((0,), 0, dtypes.int64), none
    if rows > columns and driver != "gelsy":
        missed = right - matmul(stacked(a, right)[0], solution)
        residuals = flat.sum(squared(missed), -2)
    if driver != "gels":
        _, found, _ = linalg_svd(a, False, None)
        count = significant(found, atol, rtol) if a.numel else flat.full(found.shape, False, dtypes.bool_)
        rank = flat.sum(flat.convert(count, dtypes.int64), -1)
        values = found if driver in ("gelsd", "gelss") else values
    return flat.squeeze(solution, -1) if vector else solution, residuals, rank, values


def _cutoff(driver, rcond, dtype):
    """The rcond that LAPACK's driver uses in the place of one that means nothing to it."""
    if driver == "gels" or rcond is None:
        return None  # gels takes every matrix for one of full rank
    refused = not 0 < rcond < 1 if driver == "gelsd" else rcond < 0
    return dtypes.finfo(dtype).eps if refused else rcond


# Powers


_SQUARE = [T(3, 3), T(2, 2, 2), T(0, 0), T(0, 3, 3)]


def _power_flops(types):
    return "mm" if types[0].rank == 2 else "bmm"


@op(
    "linalg_matrix_power(Tensor self, int n) -> Tensor",
    method=False,
    samples=lambda: [
        *[S(each, n) for n in (2, 0, 1, 3) for each in _SQUARE],
        S(T(2, 2, low=0, high=1), 5),
        S(Matrices(3, 3), -2),
    ],
    flops=_power_flops,
    needs="absolute_power",
    casts_out=lambda x, n: n in (0, 1),  # PyTorch copies there
)
@op(
    "matrix_power(Tensor self, int n) -> Tensor",
    samples=lambda: [*[S(each, n) for n in (2, 0, 1) for each in _SQUARE], S(Matrices(3, 3), -1)],
    flops=_power_flops,
    needs="absolute_power",
    casts_out=lambda x, n: n in (0, 1),  # PyTorch copies there
)
def linalg_matrix_power(x, n):
    """The product of n copies of a matrix, or of its inverse where n is negative."""
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power takes square matrices, not {x.type}")
    if n < 0:
        x, n = linalg_inv(x), -n
    if n == 0:
        return lapack.identity(x, x.shape[-1])
    result, square = None, x
    while n:
        if n & 1:
            result = square if result is None else contraction.matmul(result, square)
        n >>= 1
        square = contraction.matmul(square, square) if n else square
    return result


# The exponential, by Padé's quotient of a matrix that is halved until it is small, then squared again

# Coefficients of the quotient's numerator, from the constant on, and the norm up to which it is exact.
PADE = {
    dtypes.float32: (3.925724783138660, [math.factorial(14 - i) * math.comb(7, i) for i in range(8)]),
    dtypes.float64: (5.371920351148152, [math.factorial(26 - i) * math.comb(13, i) for i in range(14)]),
}


def _of_matrix_exp(ct, result, x):
    """The upper right part of the exponential of [[Aᴴ, ct], [0, Aᴴ]]."""
    n = x.shape[-1]
    top = flat.concatenate([adjoint(x), ct], x.rank - 1)
    bottom = flat.concatenate([flat.full_like(x, 0), adjoint(x)], x.rank - 1)
    whole = matrix_exponential(flat.concatenate([top, bottom], x.rank - 2))
    return (flat.slice_dim(flat.slice_dim(whole, -2, 0, n), -1, n, 2 * n),)


@flat.differentiated(_of_matrix_exp)
def matrix_exponential(x):
    if not x.numel:
        return x
    bound, coefficients = PADE[x.dtype.to_real()]
    norm = flat.reduce(flat.sum(flat.abs(x), -2), "max", -1)
    halvings = flat.ceil(flat.log(flat.maximum(norm / bound, 1.0)) / math.log(2.0))
    halvings = flat.where(flat.is_finite(halvings), halvings, 0)
    scale = flat.unsqueeze(flat.unsqueeze(flat.power(flat.full_like(halvings, 2), -halvings), -1), -1)
    x = x * flat.convert(scale, x.dtype)
    identity = lapack.identity(x, x.shape[-1])
    square = matmul(x, x)
    # Even powers, and odd ones but for a factor of x; divided by the first coefficient, which is the largest.
    terms = [coefficient / coefficients[0] for coefficient in coefficients]
    even, odd = identity * terms[0], identity * terms[1]
    power = square
    for i in range(2, len(terms), 2):
        even, odd = even + power * terms[i], odd + power * terms[i + 1]
        power = matmul(power, square) if i + 2 < len(terms) else power
    odd = matmul(x, odd)
    found = solve_matrices(even - odd, even + odd)
    last = flat.reduce(halvings, "max") if halvings.rank else halvings

    def step(i, found, halvings, last):
        again = flat.unsqueeze(flat.unsqueeze(flat.lt(i, halvings), -1), -1)
        return i + 1.0, flat.where(again, matmul(found, found), found), halvings, last

    carry = (flat.constant(0.0, halvings.dtype), found, halvings, last)
    return flat.while_loop(lambda i, found, halvings, last: i < last, step, carry)[1]


# PyTorch's own exponentials of half-precision matrices are not that.
_EXPONENTS = lambda: [
    *[S(T(3, 3, dtype=each, low=-1, high=1)) for each in ("float32", "float64", "complex64", "complex128")],
    *[S(T(2, 2, 2, dtype=each)) for each in ("float64", "complex128")],
    *[S(T(*shape, dtype="float32")) for shape in ((0, 0), (0, 3, 3), (1, 1))],
    S(T(4, 4, dtype="float64", low=-4, high=4)),
]


@op("linalg_matrix_exp(Tensor self) -> Tensor", method=False, samples=_EXPONENTS)
@op("matrix_exp(Tensor self) -> Tensor", samples=_EXPONENTS)
def linalg_matrix_exp(x):
    """1 + A + A² / 2! + A³ / 3! + …"""
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_exp takes square matrices, not {x.type}")
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"matrix_exp takes floating-point or complex matrices, not {x.dtype.name}")
    narrow = x.dtype.itemsize < 4
    found = matrix_exponential(flat.convert(x, dtypes.float32) if narrow else x)
    return flat.convert(found, x.dtype)


# Systems of tensors


@op(
    "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    method=False,
    samples=lambda: [
        S(Matrices(2, 3, 6, rows=2)),
        S(Matrices(6, 3, 2, rows=1), 1),
        S(Matrices(2, 2, 4, rows=2)),
    ],
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_tensorinv(x, ind):
    """The inverse of the map from the last dimensions, all but `ind`, to the first `ind`."""
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind is positive, not {ind}")
    if ind > x.rank:
        raise ShapeError(f"tensorinv: {x.type} does not have {ind} dimensions")
    rows, columns = math.prod(x.shape[:ind]), math.prod(x.shape[ind:])
    if rows != columns:
        raise ShapeError(f"tensorinv: the dimensions of {x.type} multiply to {rows} and to {columns}")
    check_matrices("tensorinv", flat.reshape(x, (rows, columns)))
    return flat.reshape(linalg_inv(flat.reshape(x, (rows, columns))), (*x.shape[ind:], *x.shape[:ind]))


def _solvable():
    """Tensors that are matrices far from singular ones, by their first one or two dimensions."""
    tall, wide = Matrices(2, 3, 6, rows=2), Matrices(6, 2, 3, rows=1)
    return [S(tall, T(2, 3)), S(wide, T(6)), S(wide, T(2, 3), (0,))]


@op(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    method=False,
    samples=_solvable,
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_tensorsolve(a, b, dims):
    """X of tensordot(A, X, X.ndim) = B; `dims` of A are first moved behind the others."""
    if dims is not None:
        moved = flat.axes(dims, a.rank)
        a = flat.transpose(a, [*[each for each in range(a.rank) if each not in moved], *moved])
    shape = a.shape[b.rank :]
    rows, columns = math.prod(a.shape[: b.rank]), math.prod(shape)
    if rows != columns or rows != b.numel:
        raise ShapeError(f"tensorsolve: {a.type} does not map tensors of shape {list(shape)} to {b.type}")
    found = linalg_solve(flat.reshape(a, (rows, columns)), flat.reshape(b, (rows,)), True)
    return flat.reshape(found, shape)
