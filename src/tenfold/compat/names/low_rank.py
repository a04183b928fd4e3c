"""Matrix functions that PyTorch writes in Python: factors of low rank by random projections, and the
few largest eigenvalues of a large matrix."""

from __future__ import annotations

from typing import Any

from tenfold import linalg
from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


@located
def get_approximate_basis(A: Tensor, q: int, niter: int = 2, M: Tensor | None = None) -> Tensor:
    """Q of q orthonormal columns that nearly span what A - M does: `niter` steps from a random start."""
    matrix = A if M is None else A - M
    drawn = aten("randn")((matrix.shape[-1], q), dtype=matrix.dtype, device=matrix.device)
    basis = linalg.qr(matrix @ drawn).Q
    for _ in range(niter):
        basis = linalg.qr(matrix.mH @ basis).Q
        basis = linalg.qr(matrix @ basis).Q
    return basis


@located
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with A - M ≈ U diag(S) Vᴴ, of rank q at most."""
    _require_matrix(A)
    rank = 6 if q is None else q
    if not 0 <= rank <= min(A.shape[-2:]):
        raise ArgumentError(
            f"q={rank} is not between 0 and {min(A.shape[-2:])}, the least size of the matrix"
        )
    matrix = A if M is None else A - M.expand_as(A)
    tall = matrix.shape[-2] >= matrix.shape[-1]
    oriented = matrix if tall else matrix.mH
    basis = get_approximate_basis(oriented, rank, 2 if niter is None else niter)
    small = linalg.svd(basis.mH @ oriented, full_matrices=False)
    left, right = basis @ small.U, small.Vh.mH
    return (left, small.S, right) if tall else (right, small.S, left)


@located
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The singular values and vectors of a matrix whose rows are samples, centred unless told not to."""
    _require_matrix(A)
    rank = min(6, *A.shape[-2:]) if q is None else q
    if niter < 0:
        raise ArgumentError(f"niter={niter} must not be negative")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, rank, niter)


def _require_matrix(A: Any) -> None:
    if not isinstance(A, Tensor) or A.ndim < 2:
        raise ShapeError("takes matrices, tensors of two dimensions or more")


@located
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues λ of A x = λ B x, and their vectors as columns.

    They are computed directly, from all of A: so the start X, the preconditioner iK, `niter`, `tol` and the
    `method`, which steer PyTorch's iteration, change nothing, and there are no steps to track.
    """
    _require_matrix(A)
    if method not in (None, "basic", "ortho"):
        raise ArgumentError(f"method={method!r} is not one of 'basic', 'ortho'")
    if tracker is not None or ortho_iparams or ortho_fparams or ortho_bparams:
        raise ArgumentError(
            "tracker and the ortho_ parameters are for an iteration, and none is done here",
            help="leave them out",
        )
    size = A.shape[-1]
    count = k if k is not None else 1 if X is None else X.shape[-1]
    if A.shape[-2] != size:
        raise ShapeError(f"takes square matrices, not {tuple(A.shape)}")
    if not 0 < count <= size or size < 3 * count:
        raise ArgumentError(f"a matrix of size {size} must be at least 3 times as large as k={count}")
    if B is None:
        values, vectors = linalg.eigh(A)
    else:
        # With B = L Lᴴ it is the eigenproblem of L⁻¹ A L⁻ᴴ, whose vectors are Lᴴ x.
        lower = linalg.cholesky(B)
        half = linalg.solve_triangular(lower, A, upper=False)
        values, vectors = linalg.eigh(linalg.solve_triangular(lower, half.mH, upper=False).mH)
        vectors = linalg.solve_triangular(lower.mH, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :count], vectors[..., :count]
