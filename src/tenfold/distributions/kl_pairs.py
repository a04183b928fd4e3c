"""Kullback-Leibler divergences of distributions of two families: -H(p) - E_p[log q], with the expectation by
the moments of p that log q asks for. Where p has values that q has not, they are infinite."""

from __future__ import annotations

import math
from typing import Any

from tenfold.distributions.bounded import ContinuousBernoulli
from tenfold.distributions.continuous import Exponential, Gumbel, Laplace, Normal, Uniform
from tenfold.distributions.counts import Binomial
from tenfold.distributions.discrete import Bernoulli, Poisson
from tenfold.distributions.distribution import Distribution
from tenfold.distributions.gammas import Beta, Gamma
from tenfold.distributions.kl import _infinite, kl_divergence, register_kl
from tenfold.distributions.low_rank import LowRankMultivariateNormal
from tenfold.distributions.multivariate import MultivariateNormal
from tenfold.distributions.transformed import Pareto
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

DISJOINT: dict[type[Distribution], tuple[type[Distribution], ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _disjoint(p: Any, q: Any) -> Tensor:
    return _infinite(p.mean + q.mean)


for _p, _others in DISJOINT.items():
    for _q in _others:
        register_kl(_p, _q)(_disjoint)


def _x_log_x(x: Tensor) -> Tensor:
    return aten("xlogy")(x, x)


def _mean_log(p: Any) -> Tensor:
    """E[log x], of the families below."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1  # of a Uniform


def _within(p: Any, found: Tensor) -> Tensor:
    """The divergence from what lies above zero: infinite if p reaches below, or its mean is infinite."""
    if isinstance(p, Uniform):
        return found.masked_fill(p.low < 0, math.inf)
    return found.masked_fill(p.alpha <= 1, math.inf) if isinstance(p, Pareto) else found


def _to_normal(p: Any, q: Normal) -> Tensor:
    square = (p.variance + (p.mean - q.loc) ** 2) / q.variance
    found = -p.entropy() + ((2 * math.pi * q.variance).log() + square) / 2
    return found.masked_fill(p.alpha <= 2, math.inf) if isinstance(p, Pareto) else found


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto):
    register_kl(_p, Normal)(_to_normal)


def _to_exponential(p: Any, q: Exponential) -> Tensor:
    return _within(p, -p.entropy() - q.rate.log() + q.rate * p.mean)


def _to_gamma(p: Any, q: Gamma) -> Tensor:
    constant = q.concentration * q.rate.log() - q.concentration.lgamma()
    return _within(p, -p.entropy() - constant - (q.concentration - 1) * _mean_log(p) + q.rate * p.mean)


for _p in (Beta, Pareto, Uniform):
    register_kl(_p, Exponential)(_to_exponential)
    register_kl(_p, Gamma)(_to_gamma)
register_kl(ContinuousBernoulli, Exponential)(_to_exponential)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _(p: Any, q: ContinuousBernoulli) -> Tensor:
    found = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()
    return found.masked_fill((p.high > 1) | (p.low < 0), math.inf) if isinstance(p, Uniform) else found


def _to_gumbel(p: Any, q: Gumbel, mean_exp: Tensor) -> Tensor:
    """`mean_exp` is E[exp(-x / scale)]."""
    away = (p.mean - q.loc) / q.scale
    return -p.entropy() + q.scale.log() + away + (q.loc / q.scale).exp() * mean_exp


@register_kl(Exponential, Gumbel)
def _(p: Exponential, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, p.rate / (p.rate + q.scale.reciprocal()))


@register_kl(Gamma, Gumbel)
def _(p: Gamma, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, (p.rate / (p.rate + q.scale.reciprocal())) ** p.concentration)


@register_kl(Normal, Gumbel)
def _(p: Normal, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, (-p.loc / q.scale + (p.scale / q.scale) ** 2 / 2).exp())


@register_kl(Uniform, Gumbel)
def _(p: Uniform, q: Gumbel) -> Tensor:
    spread = (-p.low / q.scale).exp() - (-p.high / q.scale).exp()
    return _to_gumbel(p, q, spread * q.scale / (p.high - p.low))


@register_kl(Normal, Laplace)
def _(p: Normal, q: Laplace) -> Tensor:
    away = p.loc - q.loc
    near = p.scale * math.sqrt(2 / math.pi) * (-((away / p.scale) ** 2) / 2).exp()
    far = away * (away / (math.sqrt(2) * p.scale)).erf()
    return -p.entropy() + (2 * q.scale).log() + (near + far) / q.scale


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _(p: Any, q: Uniform) -> Tensor:
    found = -p.entropy() + (q.high - q.low).log()
    return found.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(Uniform, Beta)
def _(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    log_rest = -(_x_log_x(1 - p.high) - _x_log_x(1 - p.low)) / width - 1
    total = q.concentration1 + q.concentration0
    constant = q.concentration1.lgamma() + q.concentration0.lgamma() - total.lgamma()
    given = (q.concentration1 - 1) * _mean_log(p) + (q.concentration0 - 1) * log_rest
    return (-width.log() + constant - given).masked_fill((p.high > 1) | (p.low < 0), math.inf)


@register_kl(Uniform, Pareto)
def _(p: Uniform, q: Pareto) -> Tensor:
    found = -p.entropy() - (q.alpha * q.scale**q.alpha).log() + (q.alpha + 1) * _mean_log(p)
    return found.masked_fill(p.low < q.scale, math.inf)


@register_kl(Bernoulli, Poisson)
def _(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _(p: Any, q: Any) -> Tensor:
    """By their whole covariances."""
    return kl_divergence(*[MultivariateNormal(each.loc, each.covariance_matrix) for each in (p, q)])
