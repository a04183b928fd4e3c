"""Parametrizations that are ready to use: of weights by their length and direction, by their largest singular
value, and as orthogonal matrices."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.nn.module import Module
from tenfold.nn.utils.orthogonal import orthogonal
from tenfold.nn.utils.parametrize import register_parametrization
from tenfold.nn.utils.spectral_norm import as_matrix, iterate, random_unit, rows_of
from tenfold.nn.utils.weight_norm import norm_except_dim, weighted
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """g·v / ‖v‖, of original0, the length, and original1, the direction."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weighted(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Parametrize a weight by its length (parametrizations.NAME.original0) and direction (original1)."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """The weight divided by its largest singular value; in training after some steps of power iteration."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise ArgumentError(f"dim {dim} is out of range for {weight.ndim} dimensions")
        if n_power_iterations <= 0:
            raise ArgumentError(f"n_power_iterations is positive, not {n_power_iterations}")
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            u, v = (random_unit(extent, weight) for extent in matrix.shape)
            iterate(matrix, matrix.mH, v, u, 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return weight / aten("linalg_vector_norm")(weight).clamp(min=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            iterate(matrix, matrix.mH, self._v, self._u, self.n_power_iterations, self.eps)
        # uᴴ W v, in which gradients flow to the matrix alone.
        return weight / aten("vdot")(self._u.clone(), matrix.mv(self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


@located
def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Parametrize a weight so that it is divided by its largest singular value."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"{type(module).__name__} has no parameter or buffer {name!r}")
    rows = rows_of(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, rows, eps))
