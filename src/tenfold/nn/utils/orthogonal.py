"""Orthogonal matrices as a parametrization: of any matrix X one with orthonormal columns, or rows where these
are fewer, by a map that gradients flow through."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ArgumentError, UnsupportedError, located
from tenfold.nn.module import Module
from tenfold.nn.utils.parametrize import register_parametrization
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """`orthogonal_map` of the lower triangle of X: exp(A) or (1 + A/2)(1 - A/2)⁻¹ of A = X - Xᴴ, or a product
    of reflections. With `use_trivialization` it turns `base`, the matrix that was assigned last."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool = True):
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.trivialized = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if wide else X
        found = self._reflected(tall) if self.orthogonal_map == "householder" else self._turned(tall)
        if self.trivialized and self.base is not None:
            found = self.base @ found
        return found.mT if wide else found

    def _turned(self, X: Tensor) -> Tensor:
        rows, columns = X.shape[-2:]
        lower = X.tril()
        if rows != columns:
            missing = aten("new_zeros")(X, (*X.shape[:-1], rows - columns))
            lower = aten("cat")([lower, missing], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            turned = aten("matrix_exp")(skew)
        else:
            one = aten("eye")(rows, dtype=X.dtype, device=X.device)
            turned = aten("linalg_solve")(one - skew / 2, one + skew / 2)
        return turned[..., :columns]

    def _reflected(self, X: Tensor) -> Tensor:
        """The columns below the diagonal are what is reflected at; the diagonal holds signs, 1 or -1."""
        vectors = X.tril(-1)
        sizes = 2 / (1 + (vectors * vectors).sum(-2))
        signs = X.diagonal(0, -2, -1).int().unsqueeze(-2)
        return aten("linalg_householder_product")(vectors, sizes) * signs

    def right_inverse(self, value: Tensor) -> Tensor:
        if value.shape != self.shape:
            raise ArgumentError(f"a matrix of shape {list(self.shape)} cannot be {list(value.shape)}")
        wide = value.shape[-2] < value.shape[-1]
        tall = value.mT if wide else value
        if self.trivialized:
            self.base = _completed(tall)
            identity = aten("eye")(*value.shape[-2:], dtype=value.dtype, device=value.device)
            return -identity.expand(value.shape).clone()  # what every map takes to the identity
        if self.orthogonal_map != "householder":
            raise UnsupportedError(
                f"without use_trivialization nothing can be assigned to a parametrization by "
                f"{self.orthogonal_map}",
                help='use orthogonal_map="householder"',
            )
        vectors, sizes = aten("geqrf")(tall)
        diagonal = vectors.diagonal(0, -2, -1)
        signs = aten("where")(sizes == 0, -diagonal.sign(), diagonal.sign())
        found = aten("diagonal_scatter")(vectors, signs, 0, -2, -1)
        return found.mT if wide else found


def _completed(tall: Tensor) -> Tensor:
    """A square orthogonal matrix that begins with these columns, or with what they span."""
    missing = tall.shape[-2] - tall.shape[-1]
    if missing:
        drawn = aten("randn")((*tall.shape[:-1], missing), dtype=tall.dtype, device=tall.device)
        tall = aten("cat")([tall, drawn], -1)
    vectors, sizes = aten("geqrf")(tall)
    signs = vectors.diagonal(0, -2, -1).sgn().unsqueeze(-2)
    return aten("linalg_householder_product")(vectors, sizes) * signs


@located
def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Constrain a parameter to matrices with orthonormal columns, or rows if these are fewer.

    `orthogonal_map` is "matrix_exp", the default for square matrices, "householder", the default for others,
    or "cayley"."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"{type(module).__name__} has no parameter or buffer {name!r}")
    if weight.ndim < 2:
        raise ArgumentError(f"an orthogonal matrix has 2 dimensions or more, not {weight.ndim}")
    square = weight.shape[-2] == weight.shape[-1] or weight.dtype.is_complex
    chosen = orthogonal_map or ("matrix_exp" if square else "householder")
    if chosen not in MAPS:
        raise ArgumentError(f"orthogonal_map is one of {', '.join(MAPS)}, not {chosen!r}")
    if chosen == "householder" and weight.dtype.is_complex:
        raise ArgumentError("the map by reflections takes no complex numbers", help='use "matrix_exp"')
    made = _Orthogonal(weight, chosen, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
