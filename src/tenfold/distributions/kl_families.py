"""The divergences of the gamma family, of counts and of transformed distributions: importing declares
them."""

from __future__ import annotations

import math

from tenfold.base.errors import UnsupportedError
from tenfold.distributions.continuous import EULER, Exponential, Gumbel, HalfNormal, Normal
from tenfold.distributions.counts import Binomial
from tenfold.distributions.distribution import ExponentialFamily
from tenfold.distributions.gammas import Beta, Dirichlet, Gamma
from tenfold.distributions.kl import kl_divergence, no_rule, register_kl
from tenfold.distributions.multivariate import summed
from tenfold.distributions.transformed import LogNormal, Pareto, TransformedDistribution
from tenfold.tensor import Tensor


@register_kl(ExponentialFamily, ExponentialFamily)
def _(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise no_rule(p, q)
    natural, normalizer, means = p._normalized()
    divergence = q._log_normalizer(*q._natural_params) - normalizer
    for of_p, of_q, mean in zip(natural, q._natural_params, means, strict=True):
        divergence = divergence - summed((of_q - of_p) * mean, len(q.event_shape))
    return divergence


@register_kl(Gamma, Gamma)
def _(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    scaled = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return scaled + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Exponential, Gamma)
def _(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    a = q.concentration
    return -a * ratio.log() + ratio + a.lgamma() + a * EULER - (1 + EULER)


@register_kl(Gamma, Exponential)
def _(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Dirichlet, Dirichlet)
def _(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norms = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _(p: Beta, q: Beta) -> Tensor:
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _(p: Binomial, q: Binomial) -> Tensor:
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(HalfNormal, HalfNormal)
def _(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(Normal(0.0, p.scale, False), Normal(0.0, q.scale, False))


@register_kl(Gumbel, Gumbel)
def _(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    away = (p.loc - q.loc) / q.scale
    return -ratio.log() + away + ratio * EULER + (-away + (1 + ratio).lgamma()).exp() - (1 + EULER)


@register_kl(Pareto, Pareto)
def _(p: Pareto, q: Pareto) -> Tensor:
    ratio = p.scale / q.scale
    found = q.alpha * ratio.log() + (p.alpha / q.alpha).log() + q.alpha / p.alpha - 1
    return found.masked_fill(p.scale < q.scale, math.inf)


@register_kl(LogNormal, LogNormal)
def _(p: LogNormal, q: LogNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise UnsupportedError("kl_divergence: both are transformed alike")
    return kl_divergence(p.base_dist, q.base_dist)
