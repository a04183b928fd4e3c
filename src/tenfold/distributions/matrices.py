"""Distributions of matrices: Wishart's, of covariances, and LKJ's, of correlations by their Cholesky
factors."""

from __future__ import annotations

import math
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError
from tenfold.base.size import Size
from tenfold.distributions import constraints
from tenfold.distributions.distribution import Distribution, ExponentialFamily, Shape, broadcast_all, normals
from tenfold.distributions.gammas import Beta, Chi2
from tenfold.distributions.multivariate import root
from tenfold.functional import broadcast_shapes
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["LKJCholesky", "Wishart"]


def _log_gamma(x: Tensor, size: int) -> Tensor:
    """The logarithm of the gamma function of matrices of this size."""
    return aten("mvlgamma")(x, size)


class Wishart(ExponentialFamily):
    """The Wishart distribution of matrices: Σ xᵢ xᵢᵀ over `df` normal vectors of this covariance

    tn.distributions.Wishart(tn.tensor(3.0), tn.eye(2)).sample().shape  # [2, 2]
    """

    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        given = [each for each in (covariance_matrix, precision_matrix, scale_tril) if each is not None]
        if len(given) != 1:
            raise ArgumentError("Wishart takes one of covariance_matrix, precision_matrix and scale_tril")
        size = given[0].shape[-1]
        (df,) = broadcast_all(df) if isinstance(df, Tensor) else [given[0].new_tensor(float(df))]
        batch = broadcast_shapes(given[0].shape[:-2], df.shape)
        self.df = df.expand(batch)
        if covariance_matrix is not None:
            scale_tril = root("covariance_matrix", covariance_matrix)
        elif precision_matrix is not None:
            scale_tril = root("precision_matrix", precision_matrix)
        assert scale_tril is not None
        self.scale_tril = scale_tril.expand((*batch, size, size))
        super().__init__(batch, (size, size), validate_args)

    @property
    def arg_constraints(self) -> Any:
        above = constraints.greater_than(self.scale_tril.shape[-1] - 1)
        return {"scale_tril": constraints.lower_cholesky, "df": above}

    @property
    def covariance_matrix(self) -> Tensor:
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        return aten("linalg_inv")(self.covariance_matrix)

    @property
    def _wide_df(self) -> Tensor:
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._wide_df * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._wide_df - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self._wide_df * (covariance.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Shape = (), max_try_correction: int | None = None) -> Tensor:
        """By Bartlett's decomposition: chi-squared roots on the diagonal, normal numbers below it."""
        size = self._event_shape[-1]
        steps = aten("arange")(size, dtype=self.df.dtype, device=self.df.device)
        roots = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False).rsample(sample_shape).sqrt()
        roots = roots.clamp(min=dtypes.finfo(roots.dtype).eps)
        below = normals(self.scale_tril, self._extended_shape(sample_shape)).tril(-1)
        factor = self.scale_tril @ (below + aten("diag_embed")(roots))
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        size, df = self._event_shape[-1], self.df
        inner = aten("cholesky_solve")(self._checked(value), self.scale_tril)
        log_det = aten("linalg_slogdet")(value).logabsdet
        return (
            -df * (size * math.log(2) / 2 + self._half_log_det)
            - _log_gamma(df / 2, size)
            + (df - size - 1) / 2 * log_det
            - inner.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    @property
    def _half_log_det(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> Tensor:
        size, df = self._event_shape[-1], self.df
        steps = aten("arange")(size, dtype=df.dtype, device=df.device)
        digammas = aten("digamma")((df.unsqueeze(-1) - steps) / 2).sum(-1)
        return (
            (size + 1) * (size * math.log(2) / 2 + self._half_log_det)
            + _log_gamma(df / 2, size)
            - (df - size - 1) / 2 * digammas
            + df * size / 2
        )


class LKJCholesky(Distribution):
    """The Lewandowski-Kurowicka-Joe distribution of Cholesky factors of correlation matrices

    The density of a correlation matrix is proportional to det^(concentration - 1).

        tn.distributions.LKJCholesky(3).sample().shape  # [3, 3]
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ArgumentError(f"LKJCholesky: dim is 2 or more, not {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.dim = self.dim
        return made

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """By the onion method: the rows one after the other, each a direction and a length."""
        shape = Size((*sample_shape, *self._batch_shape))
        offsets = aten("arange")(self.dim - 1, dtype=self.concentration.dtype).to(self.concentration.device)
        second = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2) - 0.5 * offsets
        lengths = Beta(offsets / 2 + 0.5, second, validate_args=False).sample(sample_shape)
        directions = normals(self.concentration, (*shape, self.dim, self.dim)).tril(-1)[..., 1:, :]
        directions = directions / directions.norm(dim=-1, keepdim=True)
        rows = lengths.unsqueeze(-1).sqrt() * directions
        factor = aten("cat")([rows.new_zeros((*shape, 1, self.dim)), rows], -2)
        tiny = dtypes.finfo(factor.dtype).tiny
        diagonal = (1 - factor.square().sum(-1)).clamp(min=tiny).sqrt()
        return factor + aten("diag_embed")(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        diagonal = self._checked(value).diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = aten("arange")(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalised = (order * diagonal.log()).sum(-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        return unnormalised - (
            0.5 * less * math.log(math.pi) + _log_gamma(alpha - 0.5, less) - less * aten("lgamma")(alpha)
        )
