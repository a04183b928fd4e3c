"""Normal vectors whose covariance is a diagonal and a product of few columns."""

from __future__ import annotations

import math

from tenfold.base.errors import ArgumentError
from tenfold.distributions import constraints
from tenfold.distributions.distribution import Distribution, Shape, normals
from tenfold.functional import broadcast_shapes
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with covariance W Wᵀ + D: `cov_factor` W, and a diagonal D

    normal = tn.distributions.LowRankMultivariateNormal(tn.zeros(3), tn.ones(3, 1), tn.ones(3))
    normal.sample().shape  # [3]
    """

    loc: Tensor
    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_diag.ndim < 1:
            raise ArgumentError(
                "LowRankMultivariateNormal: loc and cov_diag are vectors and cov_factor a matrix, or batches"
            )
        size = loc.shape[-1]
        if cov_factor.shape[-2] != size or cov_diag.shape[-1] != size:
            raise ArgumentError(f"LowRankMultivariateNormal: all three are of vectors of {size} numbers")
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand([*batch, -1])
        self.cov_factor = cov_factor.expand([*batch, -1, -1])
        self.cov_diag = cov_diag.expand([*batch, -1])
        super().__init__(batch, (size,), validate_args)

    def _small(self) -> Tensor:
        """The Cholesky factor of 1 + Wᵀ D⁻¹ W, which has as many columns as W."""
        turned = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        inner = turned @ self.cov_factor
        eye = aten("eye")(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        return aten("linalg_cholesky")(inner + eye)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def scale_tril(self) -> Tensor:
        return aten("linalg_cholesky")(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        turned = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        solved = aten("linalg_solve_triangular")(self._small(), turned, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - solved.mT @ solved

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        few = normals(self.loc, (*shape[:-1], self.cov_factor.shape[-1]))
        along = (self.cov_factor @ few.unsqueeze(-1)).squeeze(-1)
        return self.loc + along + self.cov_diag.sqrt() * normals(self.loc, shape)

    def _half_log_det(self, small: Tensor) -> Tensor:
        return small.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.cov_diag.log().sum(-1) / 2

    def log_prob(self, value: Tensor) -> Tensor:
        away, small = self._checked(value) - self.loc, self._small()
        turned = (self.cov_factor.mT / self.cov_diag.unsqueeze(-2)) @ away.unsqueeze(-1)
        solved = aten("linalg_solve_triangular")(small, turned, upper=False)
        distance = (away.square() / self.cov_diag).sum(-1) - solved.square().sum([-2, -1])
        size = self.event_shape[0]
        return -(size * math.log(2 * math.pi) + distance) / 2 - self._half_log_det(small)

    def entropy(self) -> Tensor:
        half = self._half_log_det(self._small())
        entropy = self.event_shape[0] / 2 * (1 + math.log(2 * math.pi)) + half
        return entropy.expand(list(self._batch_shape)) if self._batch_shape else entropy
