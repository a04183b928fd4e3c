"""Rows of matrix norms, condition numbers and ranks."""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.ops.matrices import check_matrices
from tenfold.ops.samples import Matrices, S, T
from tenfold.ops.solving import linalg_inv_ex
from tenfold.ops.spectra import linalg_eigvalsh, linalg_svdvals
from tenfold.ops.statistics import SPECIAL_ORDERS, linalg_vector_norm, not_narrower
from tenfold.ops.table import op, written

INF = math.inf


def _two(x, dims):
    """Two different dimensions of x, counted from the front."""
    if len(dims) != 2:
        raise ShapeError(f"matrix_norm takes two dimensions, not {list(dims)}")
    found = tuple([flat.axis(dim, x.rank) for dim in dims])
    if x.rank < 2:
        raise ShapeError(f"matrix_norm takes a matrix or a stack of matrices, not {x.type}")
    if found[0] == found[1]:
        raise ShapeError(f"matrix_norm takes two different dimensions, not {list(dims)}")
    return found


def _converted(x, dtype):
    if dtype is None:
        return x
    not_narrower(x, dtype)
    return flat.convert(x, dtype)


def _by_values(x, dims, keepdim, fold):
    """A norm that is made of singular values: `fold` takes those in the last dimension."""
    rest = [each for each in range(x.rank) if each not in dims]
    found = fold(linalg_svdvals(flat.transpose(x, [*rest, *dims]), None))
    if not keepdim:
        return found
    return flat.reshape(found, [1 if each in dims else extent for each, extent in enumerate(x.shape)])


def _extreme(largest):
    def fold(values):
        if not values.shape[-1]:
            return flat.sum(values, -1)
        return flat.reduce(values, "max" if largest else "min", -1)

    return fold


_DIMS = [(-2, -1), (0, 2), (2, 0)]


@op(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    method=False,
    samples=lambda: [
        *[S(T(3, 4), order) for order in (2, -2, 1, -1, INF, -INF)],
        *[S(T(2, 3, 4), order, (0, 2), True) for order in (2, 1, INF)],
        S(T(2, 3, 4), 1, (2, 0)),
        S(T(2, 3, 4), -2, (-1, 0)),
        S(T(3, 4), 2, dtype=dtypes.float64),
        S(T(0, 3, dtype="float32"), 2),
        S(T(0, 3, dtype="float32"), 1),
    ],
    autocast="cuda: float32 result",
    late=written,
    casts_out=False,
)
def linalg_matrix_norm(x, order, dims, keepdim, dtype):
    """Of singular values the largest (2) or smallest (-2); of sums of sizes, the extreme over columns (1, -1)
    or rows (inf, -inf)."""
    rows, columns = _two(x, dims)
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"matrix_norm takes floating-point or complex tensors, not {x.dtype.name}")
    if order in (2, -2):
        check_matrices("matrix_norm", x)
    x = _converted(x, dtype)
    if order in (2, -2):
        if order < 0 and not (x.shape[rows] and x.shape[columns]):
            raise IndexOutOfRange(f"{x.type} has no singular values, and the smallest of none is undefined")
        return _by_values(x, (rows, columns), keepdim, _extreme(order > 0))
    if order not in (1, -1, INF, -INF):
        raise ArgumentError(f"unknown norm {order}", help="2, -2, 1, -1, inf, -inf, 'fro' or 'nuc'")
    summed, compared = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = linalg_vector_norm(x, 1, (summed,), True, None)
    if not x.shape[compared] and order > 0:
        found = flat.sum(sums, (compared,), True)
    elif not x.shape[compared]:
        raise IndexOutOfRange(f"the smallest of no sums is undefined, and {x.type} has none")
    else:
        found = flat.reduce(sums, "max" if order > 0 else "min", (compared,), True)
    kept = [extent for each, extent in enumerate(found.shape) if keepdim or each not in (rows, columns)]
    return flat.reshape(found, kept)


@op(
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    method=False,
    samples=lambda: [
        *[S(T(3, 4), each) for each in ("fro", "nuc")],
        *[S(T(2, 3, 4), each, (0, 2), True) for each in ("fro", "nuc")],
        S(T(2, 3, 4), "nuc", (2, 0)),
        S(T(3, 4), "fro", dtype=dtypes.float64),
        S(T(0, 3, dtype="float32"), "nuc"),
    ],
    autocast="cuda: float32 result",
    casts_out=False,
)
def linalg_matrix_norm_named(x, order, dims, keepdim, dtype):
    """The root of the sum of squares ("fro"), or the sum of the singular values ("nuc")."""
    pair = _two(x, dims)
    if order == "fro":
        return linalg_vector_norm(x, 2, pair, keepdim, dtype)
    if order != "nuc":
        raise ArgumentError(f"unknown norm {order!r}", help="'fro', 'nuc' or a number")
    check_matrices("matrix_norm", x)
    x = _converted(x, dtype)
    return _by_values(x, pair, keepdim, lambda values: flat.sum(values, -1))


@op(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    method=False,
    samples=lambda: [S(T(3, 4)), S(T(2, 3, 4), True)],
    autocast="cuda: float32",
)
def nuclear_norm(x, keepdim):
    """The sum of the singular values."""
    return linalg_matrix_norm_named(x, "nuc", (-2, -1), keepdim, None)


@op(
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
    method=False,
    samples=lambda: [S(T(2, 3, 4), dims, keepdim) for dims in _DIMS for keepdim in (False, True)],
    autocast="cuda: float32",
)
def nuclear_norm_dims(x, dims, keepdim):
    """The sum of the singular values of the matrices in two dimensions."""
    return linalg_matrix_norm_named(x, "nuc", dims, keepdim, None)


@op(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(3, 4)),
        S(T(2, 3, 4), None, None, True),
        S(T(3, 4), 2),
        S(T(3, 4), INF),
        S(T(4), 3),
        S(T(4), 0),
        S(T(2, 3, 4), 2, 1),
        S(T(2, 3, 4), 1, (0, 2), True),
        S(T(2, 3, 4), None, (0, 2)),
        S(T(2, 3, 4), -2, (2, 1)),
        S(T(3, 4), 2, dtype=dtypes.float64),
    ],
    special=SPECIAL_ORDERS,
    casts_out=False,
)
def linalg_norm(x, order, dims, keepdim, dtype):
    """A vector's norm for one dimension, a matrix's for two; without `ord` the root of the sum of squares."""
    if order is None:
        return linalg_vector_norm(x, 2, dims, keepdim, dtype)
    if dims is None and x.rank not in (1, 2):
        raise ShapeError(
            f"a norm of order {order} is one of vectors or matrices, not of {x.type}", help="say which dim"
        )
    dims = tuple(range(x.rank)) if dims is None else dims
    if len(dims) == 1:
        return linalg_vector_norm(x, order, dims, keepdim, dtype)
    return linalg_matrix_norm(x, order, dims, keepdim, dtype)


@op(
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    method=False,
    samples=lambda: [
        *[S(T(3, 4), each) for each in ("fro", "nuc")],
        *[S(T(2, 3, 4), each, (0, 2), True) for each in ("fro", "nuc")],
    ],
    casts_out=False,
)
def linalg_norm_named(x, order, dims, keepdim, dtype):
    """A matrix's norm by name: "fro" or "nuc"."""
    if dims is None and x.rank != 2:
        raise ShapeError(f"the norm {order!r} is one of matrices, not of {x.type}", help="say which dim")
    return linalg_matrix_norm_named(x, order, (0, 1) if dims is None else dims, keepdim, dtype)


# Condition numbers


def _check_condition(x):
    check_matrices("cond", x)


def _with_inverse(x, norm):
    """norm(x) · norm(x⁻¹), infinite for singular matrices."""
    check_matrices("cond", x, square=True)
    inverse, info = linalg_inv_ex(x, False)
    # A singular matrix has no inverse to differentiate: its place is taken before the norm.
    fine = flat.eq(info, 0)
    spread = flat.unsqueeze(flat.unsqueeze(fine, -1), -1)
    found = norm(x) * norm(flat.where(spread, inverse, 1))
    return flat.where(fine, found, INF)


@op(
    "linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
    method=False,
    samples=lambda: [
        S(Matrices(2, 3, 4)),
        *[S(Matrices(3, 3), p) for p in (None, 2, -2, 1, -1, INF, -INF)],
        S(Matrices(2, 3, 3), 1),
        S(T(0, 0, dtype="float32")),
        S(T(0, 0, dtype="float32"), 1),
    ],
    autocast="cpu: float32",
    late=written,
    casts_out=True,
)
def linalg_cond(x, p):
    """norm(x) · norm(x⁻¹); by default the quotient of the largest and the smallest singular value."""
    _check_condition(x)
    if p is not None and p not in (2, -2, 1, -1, INF, -INF):
        raise ArgumentError(f"unknown norm {p}", help="2, -2, 1, -1, inf, -inf, 'fro' or 'nuc'")
    if not x.numel:
        return flat.full(x.shape[:-2], 0, x.dtype.to_real())
    if p in (None, 2, -2):
        values = linalg_svdvals(x, None)
        first = flat.squeeze(flat.slice_dim(values, -1, 0, 1), -1)
        last = flat.squeeze(flat.slice_dim(values, -1, values.shape[-1] - 1, values.shape[-1]), -1)
        return last / first if p == -2 else first / last
    return _with_inverse(x, lambda each: linalg_matrix_norm(each, p, (-2, -1), False, None))


@op(
    "linalg_cond.p_str(Tensor self, str p) -> Tensor",
    method=False,
    samples=lambda: [
        S(Matrices(2, 3, 3), "fro"),
        S(Matrices(3, 3), "nuc"),
        S(T(0, 0, dtype="float32"), "fro"),
    ],
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_cond_named(x, p):
    """norm(x) · norm(x⁻¹), by the norm's name: "fro" or "nuc"."""
    _check_condition(x)
    if p not in ("fro", "nuc"):
        raise ArgumentError(f"unknown norm {p!r}", help="'fro', 'nuc' or a number")
    if not x.numel:
        return flat.full(x.shape[:-2], 0, x.dtype.to_real())
    if p == "fro":
        return _with_inverse(x, lambda each: linalg_matrix_norm_named(each, p, (-2, -1), False, None))
    check_matrices("cond", x, square=True)
    values = linalg_svdvals(x, None)
    return flat.sum(values, -1) * flat.sum(1.0 / values, -1)


# Ranks


def tolerances(x, atol, rtol):
    """The absolute and the relative tolerance, each a number or a real value: by default the relative one is
    the dtype's precision times the larger extent, unless an absolute one is given."""
    precision = dtypes.finfo(x.dtype).eps * max(x.shape[-2:])
    for each in (atol, rtol):
        if isinstance(each, flat.Value) and each.dtype.is_complex:
            raise DTypeError(f"tolerances are real, not {each.type}")
    if rtol is None:
        if isinstance(atol, flat.Value):
            default = flat.full(atol.shape, precision, x.dtype.to_real())
            rtol = flat.where(flat.gt(atol, 0), 0, default)
        else:
            rtol = 0.0 if atol is not None and atol > 0 else precision
    real = x.dtype.to_real()
    return [
        flat.constant(0.0 if each is None else each, real)
        if not isinstance(each, flat.Value)
        else flat.convert(each, real)
        for each in (atol, rtol)
    ]


def significant(values, atol, rtol):
    """Which of the singular values, or sizes of eigenvalues, are above the tolerance."""
    largest = flat.reduce(values, "max", -1)
    largest, atol, rtol = flat.broadcast(largest, atol, rtol)
    bound = flat.maximum(atol, rtol * largest)
    return flat.gt(values, flat.unsqueeze(bound, -1))


def _rank(x, atol, rtol, hermitian):
    check_matrices("matrix_rank", x, square=hermitian)
    atol, rtol = tolerances(x, atol, rtol)
    if not x.numel:
        return flat.full(x.shape[:-2], 0, dtypes.int64)
    values = flat.abs(linalg_eigvalsh(x, "L")) if hermitian else linalg_svdvals(x, None)
    return flat.sum(flat.convert(significant(values, atol, rtol), dtypes.int64), -1)


_RANKED = lambda: [S(Matrices(3, 4)), S(T(2, 3, 0, dtype="float32")), S(Matrices(2, 3, 3), hermitian=True)]


@op(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False) -> Tensor",
    samples=lambda: [*_RANKED(), S(Matrices(3, 4), atol=T(2, low=1, high=4))],
    autocast="cpu: float32",
    casts_out=True,
)
@op(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
    "bool hermitian=False) -> Tensor",
    method=False,
    samples=lambda: [*_RANKED(), S(Matrices(3, 4), atol=3.0), S(Matrices(3, 3), rtol=0.9)],
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_matrix_rank(x, atol, rtol, hermitian):
    """How many singular values are above max(atol, rtol · the largest)."""
    return _rank(x, atol, rtol, hermitian)


@op(
    "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
    method=False,
    samples=lambda: [S(Matrices(3, 4), 3.0), S(Matrices(2, 3, 3), 2.5, True)],
    autocast="cpu: float32",
    casts_out=True,
)
@op(
    "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
    samples=lambda: [S(Matrices(3, 4), T(low=2, high=4)), S(Matrices(2, 3, 3), T(2, low=2, high=4), True)],
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_matrix_rank_above(x, tol, hermitian):
    """How many singular values are above a tolerance."""
    return _rank(x, tol, 0.0, hermitian)
