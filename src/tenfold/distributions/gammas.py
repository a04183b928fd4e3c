"""Distributions made of gamma draws: gamma itself, and the quotients and roots of several. Gradients flow
through `rsample`, along which a draw keeps its place in the distribution."""

from __future__ import annotations

import math
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError
from tenfold.distributions import constraints
from tenfold.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    Shape,
    broadcast_all,
    normals,
)
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import as_tensor

__all__ = ["Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "StudentT"]


def standard_gammas(shapes: Tensor) -> Tensor:
    return aten("_standard_gamma")(shapes)


class Gamma(ExponentialFamily):
    """The gamma distribution, of density rate^a·x^(a - 1)·exp(-rate·x) / Γ(a), where a is the concentration

    tn.distributions.Gamma(2.0, 1.0).log_prob(tn.tensor(1.0))  # -1.0
    """

    concentration: Tensor
    rate: Tensor
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = list(self._extended_shape(sample_shape))
        drawn = standard_gammas(self.concentration.expand(shape)) / self.rate.expand(shape)
        return drawn.clamp(min=dtypes.finfo(drawn.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(as_tensor(value, dtype=self.rate.dtype, device=self.rate.device))
        a, xlogy = self.concentration, aten("xlogy")
        return xlogy(a, self.rate) + xlogy(a - 1, value) - self.rate * value - a.lgamma()

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    def cdf(self, value: Tensor) -> Tensor:
        return aten("special_gammainc")(self.concentration, self.rate * self._checked(value))


class Chi2(Gamma):
    """The chi-squared distribution: the sum of the squares of `df` standard normal variables

    tn.distributions.Chi2(2.0).log_prob(tn.tensor(1.0))  # -1.1931
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, aten("full_like")(df, 0.5), validate_args)
        if self._validate_args:
            self._validate_within(df=(df, constraints.positive))

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.concentration, made.rate = (e.expand(list(batch_shape)) for e in (self.concentration, self.rate))
        return made

    @property
    def df(self) -> Tensor:
        return self.concentration * 2


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution over the simplex, of density proportional to ∏ xᵢ^(aᵢ - 1)

    tn.distributions.Dirichlet(tn.ones(2)).log_prob(tn.tensor([0.5, 0.5]))  # 0.0
    """

    concentration: Tensor
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.ndim < 1:
            raise ArgumentError("Dirichlet: concentration has at least one dimension")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        over = (self.concentration - 1).clamp(min=0.0)
        mode = over / over.sum(-1, keepdim=True)
        none = (self.concentration < 1).all(-1)
        hot = aten("one_hot")(mode.argmax(-1), self.concentration.shape[-1]).to(mode.dtype)
        return aten("where")(none.unsqueeze(-1), hot, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return aten("_sample_dirichlet")(self.concentration.expand(list(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        weighed = aten("xlogy")(a - 1.0, self._checked(value)).sum(-1)
        return weighed + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a, size = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        apart = ((a - 1.0) * a.digamma()).sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - (size - total) * total.digamma() - apart


class Beta(ExponentialFamily):
    """The beta distribution, of density x^(a - 1)·(1 - x)^(b - 1) / B(a, b) on [0, 1]

    tn.distributions.Beta(2.0, 2.0).log_prob(tn.tensor(0.5))  # 0.4055
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        pair = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(aten("stack")(list(pair), -1), validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made._dirichlet = self._dirichlet.expand(batch_shape)
        return made

    @property
    def concentration1(self) -> Tensor:
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return self._dirichlet.log_prob(aten("stack")([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class StudentT(Distribution):
    """Student's t distribution with `df` degrees of freedom, moved by `loc` and scaled by `scale`

    tn.distributions.StudentT(2.0).log_prob(tn.tensor(0.0))  # -1.0397
    """

    df: Tensor
    loc: Tensor
    scale: Tensor
    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self.scale**2 * self.df / (self.df - 2)
        found = aten("where")(self.df > 2, found, aten("full_like")(found, math.inf))
        return found.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        squares = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * normals(self.df, shape) * (squares / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self._checked(value) - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        norm = norm + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1.0)).lgamma()
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - norm

    def entropy(self) -> Tensor:
        beta = (0.5 * self.df).lgamma() + math.lgamma(0.5) - (0.5 * (self.df + 1)).lgamma()
        spread = (0.5 * (self.df + 1)).digamma() - (0.5 * self.df).digamma()
        return self.scale.log() + 0.5 * (self.df + 1) * spread + 0.5 * self.df.log() + beta


class FisherSnedecor(Distribution):
    """The F distribution: the quotient of two chi-squared variables, each over its degrees of freedom

    tn.distributions.FisherSnedecor(2.0, 2.0).log_prob(tn.tensor(1.0))  # -1.3863
    """

    df1: Tensor
    df2: Tensor
    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2**2 * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2) ** 2 * (df2 - 4))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        above, below = (
            Gamma(each * 0.5, each * 0.5, validate_args=False).rsample(sample_shape)
            for each in (self.df1, self.df2)
        )
        tiny = dtypes.finfo(above.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
