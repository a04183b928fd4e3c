"""Rows of singular values and eigenvalues, with their vectors.

Vectors are determined up to a factor of size one: complex ones up to a phase. A loss that depends on it has
no derivative. Gradients here leave out what would turn phases: all others are exact.
"""

from tenfold import flat
from tenfold.base.errors import ArgumentError
from tenfold.flat.grad_products import adjoint, matmul
from tenfold.ops import lapack
from tenfold.ops.matrices import check_matrices, diagonal, embedded, off_diagonal, succeeded
from tenfold.ops.samples import MATRICES, Matrices, S, T
from tenfold.ops.solving import solve_matrices
from tenfold.ops.table import op

_SQUARE = [Matrices(3, 3), Matrices(2, 2, 4, 4), T(0, 0, dtype="float32"), T(0, 3, 3, dtype="float32")]


_SIGNS = "the sign, or the phase, of each vector is for the LAPACK to choose that computes it"


def _skew(x):
    return x - adjoint(x)


def _rows(x, vector):
    """Each row of x times an element of a vector."""
    return x * flat.convert(flat.unsqueeze(vector, -1), x.dtype)


def _columns(x, vector):
    return x * flat.convert(flat.unsqueeze(vector, -2), x.dtype)


def _gaps(values):
    """For each row i and column j value[j] - value[i], and 1 on the diagonal."""
    return off_diagonal(flat.unsqueeze(values, -2) - flat.unsqueeze(values, -1), 1)


# Singular values


def _of_svd(cts, results, x, full, vectors):
    """U (skew(Uᴴ ct_U) / E · S + S · skew(Vᴴ ct_V) / E + ct_S) Vᴴ, E[i, j] being S[j]² - S[i]²; and what
    of the cotangents lies outside the spaces that U and V span, over S."""
    by_u, by_s, by_vh = cts
    u, s, vh = results
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    if full:
        u, vh = flat.slice_dim(u, -1, 0, k), flat.slice_dim(vh, -2, 0, k)
        by_u = None if by_u is None else flat.slice_dim(by_u, -1, 0, k)
        by_vh = None if by_vh is None else flat.slice_dim(by_vh, -2, 0, k)
    inner = flat.full((*x.shape[:-2], k, k), 0, x.dtype)
    if by_s is not None:
        inner = embedded(flat.convert(by_s, x.dtype))
    if by_u is not None or by_vh is not None:
        turned_u = None if by_u is None else _skew(matmul(adjoint(u), by_u))
        turned_v = None if by_vh is None else _skew(matmul(vh, adjoint(by_vh)))
        gaps = off_diagonal(_gaps(s) * (flat.unsqueeze(s, -2) + flat.unsqueeze(s, -1)), 1)
        terms = []
        if turned_u is not None:
            terms.append(_columns(turned_u, s))
        if turned_v is not None:
            terms.append(_rows(turned_v, s))
        found = (terms[0] if len(terms) == 1 else terms[0] + terms[1]) / flat.convert(gaps, x.dtype)
        if x.dtype.is_complex and turned_u is not None:
            found = found + embedded(diagonal(turned_u) / flat.convert(s * 2.0, x.dtype))
        inner = inner + found
    if rows > columns and by_u is not None:
        outside = by_u / flat.convert(flat.unsqueeze(s, -2), x.dtype)
        outside = outside - matmul(u, matmul(adjoint(u), outside))
        return (matmul(matmul(u, inner) + outside, vh),)
    if rows < columns and by_vh is not None:
        outside = by_vh / flat.convert(flat.unsqueeze(s, -1), x.dtype)
        outside = outside - matmul(matmul(outside, adjoint(vh)), vh)
        return (matmul(u, matmul(inner, vh) + outside),)
    return (matmul(u, matmul(inner, vh)) if rows >= columns else matmul(matmul(u, inner), vh),)


@flat.differentiated(_of_svd)
def _svd(x, full, vectors):
    u, s, vh, info = lapack.gesdd(x, full, vectors)
    return u, succeeded(s, info, "svd: LAPACK found no singular values, the matrix may hold NaN"), vh


def _of_svdvals(ct, s, x):
    """The vectors are computed only now."""
    u, _, vh = _svd(x, False, True)
    return (matmul(_columns(u, ct), vh),)


@flat.differentiated(_of_svdvals)
def _svdvals(x):
    return _svd(x, False, False)[1]


def _check_svd(x, driver):
    check_matrices("svd", x)
    if driver is not None:
        raise ArgumentError(f"driver={driver!r} is for CUDA alone", help="leave it out")


@op(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
    "-> (Tensor U, Tensor S, Tensor Vh)",
    differs=_SIGNS,
    samples=lambda: [*[S(matrix) for matrix in MATRICES], S(MATRICES[1], True), S(MATRICES[1], False, False)],
)
def linalg_svd_internal(x, full_matrices, compute_uv, driver):
    """A = U · diag(S) · Vh; without vectors U and Vh are empty."""
    _check_svd(x, driver)
    if compute_uv:
        return _svd(x, full_matrices, True)
    nothing = flat.full((0,), 0, x.dtype)
    return nothing, _svdvals(x), nothing


@op(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    differs=_SIGNS,
    samples=lambda: [S(matrix, full) for full in (True, False) for matrix in MATRICES],
    autocast="cpu: float32",
)
def linalg_svd(x, full_matrices, driver):
    """A = U · diag(S) · Vh: orthonormal columns, singular values from the largest on, orthonormal rows."""
    return linalg_svd_internal(x, full_matrices, True, driver)


@op(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    samples=lambda: [S(matrix) for matrix in MATRICES],
    autocast="cpu: float32",
)
def linalg_svdvals(x, driver):
    """The singular values from the largest on."""
    return linalg_svd_internal(x, False, False, driver)[1]


@op(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    differs=_SIGNS,
    samples=lambda: [
        *[S(matrix, some) for some in (True, False) for matrix in MATRICES],
        S(MATRICES[1], True, False),
    ],
    autocast="cpu: float32",
)
def svd(x, some, compute_uv):
    """A = U · diag(S) · Vᴴ; without vectors U and V are zeros."""
    if compute_uv:
        u, s, vh = linalg_svd_internal(x, not some, True, None)
        return u, s, adjoint(vh)
    s = linalg_svd_internal(x, False, False, None)[1]
    rows, columns = x.shape[-2:]
    blank = [flat.full((*x.shape[:-2], each, each), 0, x.dtype) for each in (rows, columns)]
    return blank[0], s, blank[1]


# Eigenvalues


def _of_eigh(cts, results, x, lower):
    """V (skew(Vᴴ ct_V) / 2E + ct_L) Vᴴ, E[i, j] being L[j] - L[i]."""
    by_values, by_vectors = cts
    values, vectors = results
    inner = flat.full_like(vectors, 0)
    if by_values is not None:
        inner = embedded(flat.convert(by_values, x.dtype))
    if by_vectors is not None:
        turned = matmul(adjoint(vectors), by_vectors)
        found = off_diagonal(_skew(turned) * 0.5 / flat.convert(_gaps(values), x.dtype), 0)
        inner = inner + found
    return (matmul(vectors, matmul(inner, adjoint(vectors))),)


_NO_EIGENVALUES = "LAPACK found no eigenvalues, the matrix may hold NaN"


@flat.differentiated(_of_eigh)
def _eigh(x, lower):
    values, vectors, info = lapack.syevd(x, lower, True)
    return succeeded(values, info, f"eigh: {_NO_EIGENVALUES}"), vectors


def _of_eigvalsh(ct, values, x, lower):
    vectors = _eigh(x, lower)[1]
    return (matmul(_columns(vectors, ct), adjoint(vectors)),)


@flat.differentiated(_of_eigvalsh)
def _eigvalsh(x, lower):
    values, _, info = lapack.syevd(x, lower, False)
    return succeeded(values, info, f"eigvalsh: {_NO_EIGENVALUES}")


def _lower(uplo):
    if uplo.upper() not in ("L", "U"):
        raise ArgumentError(f"UPLO is L or U, not {uplo!r}")
    return uplo.upper() == "L"


_HERMITIAN = lambda: [*[S(each) for each in _SQUARE], S(_SQUARE[1], "U"), S(_SQUARE[0], "l")]


@op(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    differs=_SIGNS,
    samples=lambda: [*_HERMITIAN(), S(_SQUARE[1], "L", False)],
)
def linalg_eigh_internal(x, uplo, compute_v):
    """Eigenvalues in ascending order and eigenvectors in columns; these are empty if not asked for."""
    check_matrices("eigh", x, square=True)
    if compute_v:
        return _eigh(x, _lower(uplo))
    return _eigvalsh(x, _lower(uplo)), flat.full((0,), 0, x.dtype)


@op(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    method=False,
    differs=_SIGNS,
    samples=_HERMITIAN,
    autocast="cpu: float32",
)
def linalg_eigh(x, uplo):
    """Eigenvalues of Hermitian matrices, in ascending order, and eigenvectors in columns. One triangle is
    read: the lower for UPLO="L", the upper for "U"."""
    return linalg_eigh_internal(x, uplo, True)


@op(
    'linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor',
    method=False,
    samples=_HERMITIAN,
    autocast="cpu: float32",
)
def linalg_eigvalsh(x, uplo):
    """Eigenvalues of Hermitian matrices in ascending order."""
    return linalg_eigh_internal(x, uplo, False)[0]


def _of_eig(cts, results, x):
    """V⁻ᴴ ((Vᴴ ct_V - VᴴV diag(re(Vᴴ ct_V))) / conj(E) + ct_L) Vᴴ, E[i, j] being L[j] - L[i]."""
    by_values, by_vectors = cts
    values, vectors = results
    inner = flat.full_like(vectors, 0)
    if by_values is not None:
        inner = embedded(by_values)
    if by_vectors is not None:
        turned = matmul(adjoint(vectors), by_vectors)
        found = turned - _columns(matmul(adjoint(vectors), vectors), flat.real(diagonal(turned)))
        found = off_diagonal(found / flat.conj(_gaps(values)), 0)
        inner = inner + found
    return (solve_matrices(adjoint(vectors), matmul(inner, adjoint(vectors))),)


@flat.differentiated(_of_eig)
def _eig(x):
    values, vectors, info = lapack.geev(x, True)
    return succeeded(values, info, f"eig: {_NO_EIGENVALUES}"), vectors


def _of_eigvals(ct, values, x):
    vectors = _eig(x)[1]
    return (solve_matrices(adjoint(vectors), matmul(embedded(ct), adjoint(vectors))),)


@flat.differentiated(_of_eigvals)
def _eigvals(x):
    values, _, info = lapack.geev(x, False)
    return succeeded(values, info, f"eigvals: {_NO_EIGENVALUES}")


@op(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    method=False,
    differs=_SIGNS,
    samples=lambda: [S(each) for each in _SQUARE],
    autocast="cpu: float32",
    casts_out=True,
)
def linalg_eig(x):
    """Eigenvalues of square matrices, and right eigenvectors in columns; both are complex."""
    check_matrices("eig", x, square=True)
    return _eig(x)


@op(
    "linalg_eigvals(Tensor self) -> Tensor",
    method=False,
    samples=lambda: [S(each) for each in _SQUARE],
    autocast="cpu: float32",
    needs="finite",
    casts_out=True,
)
@op(
    "_linalg_eigvals(Tensor self) -> Tensor",
    method=False,
    function=False,
    samples=lambda: [S(each) for each in _SQUARE],
    needs="finite",
)
def linalg_eigvals(x):
    """Eigenvalues of square matrices, complex."""
    check_matrices("eigvals", x, square=True)
    return _eigvals(x)
