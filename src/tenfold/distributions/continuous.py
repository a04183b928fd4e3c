"""Distributions of real numbers by a location and a scale, or a rate. Each draws by a function of numbers
that do not depend on its parameters, so gradients flow through `rsample`."""

from __future__ import annotations

import math
from typing import Any

from tenfold.base.dtypes import finfo
from tenfold.distributions import constraints
from tenfold.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    Shape,
    broadcast_all,
    normals,
    uniforms,
)
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["Cauchy", "Exponential", "Gumbel", "HalfCauchy", "HalfNormal", "Laplace", "Normal", "Uniform"]

EULER = 0.57721566490153286060


class _Scaled(Distribution):
    """A distribution by its location and its scale."""

    loc: Tensor
    scale: Tensor
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _standard(self, value: Tensor) -> Tensor:
        """A value, checked, as so many scales from the location."""
        return (self._checked(value) - self.loc) / self.scale

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class Normal(_Scaled, ExponentialFamily):
    """The normal distribution, of density exp(-z²/2) / (σ·√2π) with z = (x - loc) / scale

    tn.distributions.Normal(0.0, 1.0).log_prob(tn.tensor(0.0))  # -0.9189
    """

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale**2

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.loc + normals(self.loc, self._extended_shape(sample_shape)) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        return -(self._standard(value) ** 2) / 2 - self.scale.log() - math.log(2 * math.pi) / 2

    def cdf(self, value: Tensor) -> Tensor:
        return (1 + (self._standard(value) / math.sqrt(2)).erf()) / 2

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + math.log(2 * math.pi) / 2 + self.scale.log()


class Laplace(_Scaled):
    """The Laplace distribution, of density exp(-|z|) / 2σ with z = (x - loc) / scale

    tn.distributions.Laplace(0.0, 1.0).log_prob(tn.tensor(1.0))  # -1.6931
    """

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale**2

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        eps = finfo(self.loc.dtype).eps  # of numbers nearer to -1 and 1 the draw would be infinite
        drawn = 2 * uniforms(self.loc, self._extended_shape(sample_shape)) - 1
        sided = drawn.clamp(eps - 1, 1 - eps)
        return self.loc - self.scale * sided.sign() * (-sided.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._standard(value).abs() - (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        sided = value - 0.5
        return self.loc - self.scale * sided.sign() * (-2 * sided.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_Scaled):
    """The Cauchy distribution, of density 1 / (πσ·(1 + z²)) with z = (x - loc) / scale; it has no mean

    tn.distributions.Cauchy(0.0, 1.0).log_prob(tn.tensor(0.0))  # -1.1447
    """

    @property
    def mean(self) -> Tensor:
        return aten("full_like")(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return aten("full_like")(self.loc, math.inf)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        turned = uniforms(self.loc, self._extended_shape(sample_shape)) - 0.5
        return self.loc + self.scale * (math.pi * turned).tan()

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - (self._standard(value) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_Scaled):
    """The Gumbel distribution, of density exp(-z - exp(-z)) / σ with z = (x - loc) / scale: of extreme values

    tn.distributions.Gumbel(0.0, 1.0).log_prob(tn.tensor(0.0))  # -1.0
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def variance(self) -> Tensor:
        return self.stddev**2

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.icdf(uniforms(self.loc, self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        z = -self._standard(value)
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class _Half(Distribution):
    """The part above zero of a distribution around it, twice as dense."""

    scale: Tensor
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _whole: type[_Scaled]

    def __init__(self, scale: Any, validate_args: bool | None = None):
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def base_dist(self) -> Any:
        return self._whole(aten("zeros_like")(self.scale), self.scale, validate_args=False)

    @property
    def mode(self) -> Tensor:
        return aten("zeros_like")(self.scale)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        density = self.base_dist.log_prob(self._checked(value)) + math.log(2)
        return aten("where")(value >= 0, density, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The half-normal distribution: |x|, where x is normal around zero

    tn.distributions.HalfNormal(1.0).log_prob(tn.tensor(1.0))  # -0.7258
    """

    _whole = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The half-Cauchy distribution: |x|, where x is Cauchy around zero

    tn.distributions.HalfCauchy(1.0).log_prob(tn.tensor(1.0))  # -1.1447
    """

    _whole = Cauchy

    @property
    def mean(self) -> Tensor:
        return aten("full_like")(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance


class Exponential(ExponentialFamily):
    """The exponential distribution, of density λ·exp(-λx) for x ≥ 0

    tn.distributions.Exponential(2.0).log_prob(tn.tensor(0.5))  # -0.3069
    """

    rate: Tensor
    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return aten("zeros_like")(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return -uniforms(self.rate, self._extended_shape(sample_shape)).log() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * self._checked(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class _AboveLow(constraints._GreaterThan):
    """Above the lower bound, whose numbers an error does not list."""

    def __repr__(self) -> str:
        return "GreaterThan(low)"


class Uniform(Distribution):
    """The uniform distribution, of density 1 / (high - low) from `low` up to, and without, `high`

    tn.distributions.Uniform(0.0, 2.0).log_prob(tn.tensor(1.0))  # -0.6931
    """

    low: Tensor
    high: Tensor
    arg_constraints = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args:
            self._validate_order()

    def _validate_order(self) -> None:
        self._validate_within(high=(self.high, _AboveLow(self.low.detach())))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = list(self._extended_shape(sample_shape))
        drawn = aten("rand")(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        inside = (self.low <= self._checked(value)) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
