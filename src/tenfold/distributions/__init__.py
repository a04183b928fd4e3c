"""`tenfold.distributions`: distributions by PyTorch's names, their densities, draws and divergences."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.distributions import constraints, kl, kl_families, kl_pairs, transforms, utils
from tenfold.distributions.bounded import ContinuousBernoulli, GeneralizedPareto
from tenfold.distributions.constraint_registry import biject_to, transform_to
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
from tenfold.distributions.counts import Binomial, Multinomial, NegativeBinomial
from tenfold.distributions.discrete import (
    Bernoulli,
    Categorical,
    Geometric,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from tenfold.distributions.distribution import Distribution, ExponentialFamily
from tenfold.distributions.gammas import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, StudentT
from tenfold.distributions.kl import kl_divergence, register_kl
from tenfold.distributions.low_rank import LowRankMultivariateNormal
from tenfold.distributions.matrices import LKJCholesky, Wishart
from tenfold.distributions.mixtures import MixtureSameFamily
from tenfold.distributions.multivariate import Independent, MultivariateNormal
from tenfold.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from tenfold.distributions.transformed import (
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    TransformedDistribution,
    Weibull,
)
from tenfold.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from tenfold.distributions.vonmises import VonMises

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl",
    "kl_divergence",
    "kl_families",
    "kl_pairs",
    "register_kl",
    "transform_to",
    "transforms",
    "utils",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.distributions", name, globals())
