"""Distributions of events with dimensions: of a batch taken for one event, and of normal vectors."""

from __future__ import annotations

import math
from typing import Any

from tenfold.autograd.grad_mode import enable_grad
from tenfold.base.errors import ArgumentError
from tenfold.distributions import constraints
from tenfold.distributions.distribution import Distribution, Shape, normals
from tenfold.distributions.utils import lazy_property
from tenfold.functional import broadcast_shapes
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["Independent", "MultivariateNormal"]


def summed(value: Tensor, dims: int) -> Tensor:
    """The sum over the last dimensions, so many."""
    return value.sum(list(range(-dims, 0))) if dims else value


class Independent(Distribution):
    """Reinterprets the last batch dimensions of a distribution as dimensions of its events

    base = tn.distributions.Normal(tn.zeros(3), tn.ones(3))
    tn.distributions.Independent(base, 1).log_prob(tn.zeros(3))  # -2.7568
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ):
        outer = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if outer < 0:
            raise ArgumentError(
                f"Independent: reinterpreted_batch_ndims={reinterpreted_batch_ndims}, but the distribution's "
                f"batch has {len(base_distribution.batch_shape)} dimensions"
            )
        whole = (*base_distribution.batch_shape, *base_distribution.event_shape)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(whole[:outer], whole[outer:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        made.base_dist = self.base_dist.expand((*batch_shape, *inner))
        made.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return made

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return summed(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise self._lacks("enumerate_support")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MultivariateNormal(Distribution):
    """The normal distribution of vectors around `loc`

    Give one of three: the covariance, its inverse (the precision), or the lower triangular `scale_tril`,
    whose product with its transpose is the covariance.

        tn.distributions.MultivariateNormal(tn.zeros(2), tn.eye(2)).log_prob(tn.zeros(2))  # -1.8379
    """

    loc: Tensor
    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        given = dict(zip(self.MATRICES, (covariance_matrix, precision_matrix, scale_tril), strict=True))
        named = [(name, each) for name, each in given.items() if each is not None]
        if len(named) != 1:
            raise ArgumentError(f"MultivariateNormal: give exactly one of {', '.join(self.MATRICES)}")
        name, matrix = named[0]
        if loc.ndim < 1 or matrix.ndim < 2:
            raise ArgumentError(
                f"MultivariateNormal: loc is a vector and {name} a matrix, or batches of them"
            )
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand([*batch, -1, -1]))
        self.loc = loc.expand([*batch, -1])
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        with enable_grad():  # it stays, whoever made the distribution
            self._unbroadcasted_scale_tril = root(name, matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._unbroadcasted_scale_tril.expand([*self._batch_shape, *self._event_shape * 2])

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        root = self._unbroadcasted_scale_tril
        return (root @ root.mT).expand([*self._batch_shape, *self._event_shape * 2])

    @lazy_property
    def precision_matrix(self) -> Tensor:
        inverse = aten("cholesky_inverse")(self._unbroadcasted_scale_tril)
        return inverse.expand([*self._batch_shape, *self._event_shape * 2])

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        if "_unbroadcasted_scale_tril" in vars(self):
            made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return made

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        spread = self._unbroadcasted_scale_tril.square().sum(-1)
        return spread.expand([*self._batch_shape, *self._event_shape])

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        drawn = normals(self.loc, self._extended_shape(sample_shape))
        return self.loc + (self._unbroadcasted_scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        away = (self._checked(value) - self.loc).unsqueeze(-1)
        whitened = aten("linalg_solve_triangular")(self._unbroadcasted_scale_tril, away, upper=False)
        size = self.event_shape[0]
        return -(whitened.square().sum([-2, -1]) + size * math.log(2 * math.pi)) / 2 - self._half_log_det()

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> Tensor:
        entropy = self.event_shape[0] / 2 * (1 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape)


def root(name: str, matrix: Tensor) -> Tensor:
    """The covariance's Cholesky factor, from the matrix that the distribution was given."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return aten("linalg_cholesky")(matrix)
    # With the rows and columns of the precision in reverse, its factor is the inverse's in reverse.
    factor = aten("linalg_cholesky")(matrix.flip([-2, -1])).flip([-2, -1]).mT
    eye = aten("eye")(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return aten("linalg_solve_triangular")(factor, eye, upper=False)
