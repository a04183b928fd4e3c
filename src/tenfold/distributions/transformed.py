"""Distributions that are transforms of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError
from tenfold.distributions import constraints
from tenfold.distributions.continuous import EULER, Exponential, Normal, Uniform
from tenfold.distributions.distribution import Distribution, Shape, broadcast_all
from tenfold.distributions.elementwise_transforms import AffineTransform, ExpTransform, PowerTransform
from tenfold.distributions.gammas import Gamma
from tenfold.distributions.multivariate import Independent
from tenfold.distributions.transforming import ComposeTransform, Transform, summed
from tenfold.distributions.vector_transforms import StickBreakingTransform
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "InverseGamma", "Kumaraswamy", "LogNormal", "LogisticNormal", "Pareto", "TransformedDistribution",
    "Weibull",
]  # fmt: skip


class TransformedDistribution(Distribution):
    """The distribution of samples of another one after transforms

    Its density is that of the base, divided by |dy/dx|.

        base = tn.distributions.Normal(0.0, 1.0)
        exp = tn.distributions.ExpTransform()
        tn.distributions.TransformedDistribution(base, [exp]).log_prob(tn.tensor(1.0))  # -0.9189
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self,
        base_distribution: Any,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(each, Transform) for each in self.transforms):
            raise ArgumentError("TransformedDistribution: transforms are a Transform or a list of them")
        whole = (*base_distribution.batch_shape, *base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        dims = transform.domain.event_dim
        if len(whole) < dims:
            raise ArgumentError(f"TransformedDistribution: the base has less than {dims} dimensions")
        before = transform.inverse_shape(transform.forward_shape(whole))
        grown = len(before) - len(base_distribution.event_shape)
        if tuple(before) != tuple(whole):
            base_distribution = base_distribution.expand(before[:grown])
        missing = dims - len(base_distribution.event_shape)
        self.base_dist: Any = Independent(base_distribution, missing) if missing > 0 else base_distribution
        after = transform.forward_shape(before)
        gained = transform.codomain.event_dim - dims
        event_dim = max(transform.codomain.event_dim, len(self.base_dist.event_shape) + gained)
        cut = len(after) - event_dim
        super().__init__(after[:cut], after[cut:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        whole = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        made.base_dist = self.base_dist.expand(whole[: len(whole) - len(self.base_dist.event_shape)])
        made.transforms = self.transforms
        return made

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        missing = len(self.event_shape) - found.event_dim
        return constraints.independent(found, missing) if missing > 0 else found

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        found: Any = 0.0
        y, dims = self._checked(value), len(self.event_shape)
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            found = found - summed(transform.log_abs_det_jacobian(x, y), dims - transform.domain.event_dim)
            y = x
        return found + summed(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _sign(self) -> Any:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def _turned(self, place: Tensor) -> Tensor:
        """A place in the distribution, counted from the other side where the transforms fall."""
        sign = self._sign()
        return place if isinstance(sign, int) and sign == 1 else sign * (place - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._base_validates():
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def _base_validates(self) -> bool:
        return bool(self.base_dist._validate_args)

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._turned(value)))

    def __repr__(self) -> str:
        if type(self) is TransformedDistribution:
            return "TransformedDistribution()"
        return super().__repr__()


class LogNormal(TransformedDistribution):
    """The log-normal distribution: exp(x), where x is normal with mean `loc` and deviation `scale`

    tn.distributions.LogNormal(0.0, 1.0).log_prob(tn.tensor(1.0))  # -0.9189
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Tensor:
        return (self.scale**2).expm1() * (2 * self.loc + self.scale**2).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """The logistic-normal distribution over the simplex: a normal vector through a stick-breaking transform

    tn.distributions.LogisticNormal(tn.zeros(2), tn.ones(2)).sample().shape  # [3]
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        return self.base_dist.base_dist.scale


class Weibull(TransformedDistribution):
    """The Weibull distribution: scale·e^(1/concentration), where e is exponential of rate 1

    tn.distributions.Weibull(1.0, 2.0).log_prob(tn.tensor(1.0))  # -0.3069
    """

    scale: Tensor
    concentration: Tensor
    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(aten("ones_like")(self.scale), validate_args)
        power = PowerTransform(self.concentration_reciprocal)
        super().__init__(base, [power, AffineTransform(0, self.scale)], validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.concentration_reciprocal = made.concentration.reciprocal()
        made.transforms = [PowerTransform(made.concentration_reciprocal), AffineTransform(0, made.scale)]
        return made

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return self.scale**2 * ((1 + 2 * inverse).lgamma().exp() - (2 * (1 + inverse).lgamma()).exp())

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return EULER * (1 - inverse) + (self.scale * inverse).log() + 1


class Pareto(TransformedDistribution):
    """The Pareto distribution, of density alpha·scale^alpha / x^(alpha + 1) for x ≥ scale

    tn.distributions.Pareto(1.0, 2.0).log_prob(tn.tensor(2.0))  # -1.3863
    """

    scale: Tensor
    alpha: Tensor
    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.transforms = [ExpTransform(), AffineTransform(0, made.scale)]
        return made

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution: (1 - (1 - u)^(1/b))^(1/a), where u is uniform on [0, 1]

    tn.distributions.Kumaraswamy(2.0, 2.0).log_prob(tn.tensor(0.5))  # 0.4055
    """

    concentration1: Tensor
    concentration0: Tensor
    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        like = aten("full_like")
        base = Uniform(like(self.concentration0, 0), like(self.concentration0, 1), validate_args)
        super().__init__(base, self._steps(), validate_args)

    def _steps(self) -> list[Transform]:
        return [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.transforms = made._steps()
        return made

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        near = (1 + n / a).lgamma() + b.lgamma() - (1 + n / a + b).lgamma()
        return b * near.exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return mode.masked_fill((a < 1) | (b < 1), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean**2

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        t1, t0 = 1 - a.reciprocal(), 1 - b.reciprocal()
        harmonic = (b + 1).digamma() + EULER
        return t0 + t1 * harmonic - a.log() - b.log()


class InverseGamma(TransformedDistribution):
    """The inverse gamma distribution: 1 / x, where x is gamma-distributed

    tn.distributions.InverseGamma(2.0, 1.0).log_prob(tn.tensor(1.0))  # -1.0
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-1), validate_args)

    @property
    def concentration(self) -> Tensor:
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        found = self.rate / (self.concentration - 1)
        return aten("where")(self.concentration > 1, found, aten("full_like")(found, math.inf))

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        found = self.rate**2 / ((a - 1) ** 2 * (a - 2))
        return aten("where")(a > 2, found, aten("full_like")(found, math.inf))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
