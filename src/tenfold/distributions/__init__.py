"""`tenfold.distributions`: distributions by PyTorch's names, their densities, draws and divergences."""

from __future__ import annotations

from typing import Any

from tenfold.distributions import constraints, kl
from tenfold.distributions.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Laplace,
    Normal,
    Uniform,
)
from tenfold.distributions.discrete import (
    Bernoulli,
    Categorical,
    Geometric,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from tenfold.distributions.distribution import Distribution, ExponentialFamily
from tenfold.distributions.kl import kl_divergence, register_kl
from tenfold.distributions.multivariate import Independent, MultivariateNormal
from tenfold.errors import unknown_name

__all__ = [
    "Bernoulli", "Categorical", "Cauchy", "Distribution", "Exponential", "ExponentialFamily", "Geometric",
    "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "Laplace", "MultivariateNormal", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Poisson", "Uniform", "constraints", "kl",
    "kl_divergence", "register_kl",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.distributions", name, globals())
