"""Distributions on an interval: the continuous Bernoulli on [0, 1], and the generalized Pareto from a
threshold on, as far as its shape lets it reach."""

from __future__ import annotations

import math
from typing import Any

from tenfold.distributions import constraints
from tenfold.distributions.discrete import _Binary, _cross_entropy, within
from tenfold.distributions.distribution import Distribution, ExponentialFamily, Shape, broadcast_all, uniforms
from tenfold.functional import broadcast_tensors
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["ContinuousBernoulli", "GeneralizedPareto"]


class ContinuousBernoulli(_Binary, ExponentialFamily):
    """The continuous Bernoulli distribution, of density C(λ)·λˣ·(1 - λ)¹⁻ˣ on [0, 1]

    Close to λ = 1/2, inside `lims`, where C is a quotient of small numbers, series are used.

        tn.distributions.ContinuousBernoulli(0.5).log_prob(tn.tensor(0.25))  # 0.0
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        self._lims = lims
        if probs is not None:
            (probs,) = broadcast_all(probs)
            if validate_args is not None:  # afterwards they always pass
                self._validate_within(probs=(probs, constraints.unit_interval))
            probs = within(probs)
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made._lims = self._lims
        return made

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """λ within its bounds, where it is far from 1/2, and a λ that is far from it everywhere."""
        probs = within(self.probs)
        far = (probs <= self._lims[0]) | (probs > self._lims[1])
        return probs, far, aten("where")(far, probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        """log C(λ)"""
        probs, far, safe = self._parts()
        exact = ((-safe).log1p() - safe.log()).abs().log() - (1 - 2 * safe).abs().log()
        square = (probs - 0.5) ** 2
        return aten("where")(far, exact, math.log(2) + (4 / 3 + 104 / 45 * square) * square)

    @property
    def mean(self) -> Tensor:
        probs, far, safe = self._parts()
        exact = safe / (2 * safe - 1) + 1 / ((-safe).log1p() - safe.log())
        away = probs - 0.5
        return aten("where")(far, exact, 0.5 + (1 / 3 + 16 / 45 * away**2) * away)

    @property
    def variance(self) -> Tensor:
        probs, far, safe = self._parts()
        exact = safe * (safe - 1) / (1 - 2 * safe) ** 2 + 1 / ((-safe).log1p() - safe.log()) ** 2
        square = (probs - 0.5) ** 2
        return aten("where")(far, exact, 1 / 12 - (1 / 15 - 128 / 945 * square) * square)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.icdf(uniforms(self.probs, self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_tensors(self.logits, self._checked(value))
        return self._log_norm() - _cross_entropy(logits, value)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        _, far, safe = self._parts()
        exact = (safe**value * (1 - safe) ** (1 - value) + safe - 1) / (2 * safe - 1)
        return aten("where")(far, exact, value).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        _, far, safe = self._parts()
        rest = (-safe).log1p()
        exact = ((value * (2 * safe - 1) - safe).log1p() - rest) / (safe.log() - rest)
        return aten("where")(far, exact, value)

    def entropy(self) -> Tensor:
        probs = within(self.probs)
        rest = (-probs).log1p()
        return self.mean * (rest - probs.log()) - self._log_norm() - rest


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, of density (1 + ξz)^(-1/ξ - 1) / σ with z = (x - loc) / scale ≥ 0

    ξ is the concentration; where it is zero the density is exp(-z) / σ.

        tn.distributions.GeneralizedPareto(0.0, 1.0, 0.5).log_prob(tn.tensor(1.0))  # -1.2164
    """

    loc: Tensor
    scale: Tensor
    concentration: Tensor
    arg_constraints = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real
    }  # fmt: skip
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        reach = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, aten("where")(self.concentration < 0, reach, math.inf))

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is zero, and one that nowhere is."""
        zero = aten("isclose")(self.concentration, aten("zeros_like")(self.concentration))
        return zero, self.concentration.masked_fill(zero, 1)

    def _standard(self, value: Tensor) -> Tensor:
        return (self._checked(value) - self.loc) / self.scale

    @property
    def mean(self) -> Tensor:
        found = self.loc + self.scale / (1 - self.concentration)
        return found.masked_fill(self.concentration >= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self.scale**2 / ((1 - self.concentration) ** 2 * (1 - 2 * self.concentration))
        return found.masked_fill(self.concentration >= 0.5, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.icdf(uniforms(self.loc, self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        zero, shape = self._shape()
        power = 1 / shape + 1
        bent = aten("where")(power == 0, power, power * (shape * z).log1p())
        return -self.scale.log() - aten("where")(zero, z, bent)

    def log_survival_function(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        zero, shape = self._shape()
        return aten("where")(zero, -z, -(shape * z).log1p() / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, shape = self._shape()
        rest = (-value).log1p()
        bent = self.scale / shape * (-shape * rest).expm1()
        return self.loc + aten("where")(zero, -self.scale * rest, bent)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
