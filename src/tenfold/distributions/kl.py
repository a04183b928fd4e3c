"""The divergence of one distribution from another: KL(p ‖ q), the mean under p of log p - log q. A rule for
two classes serves their subclasses too; the nearest rule wins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.distributions.continuous import Cauchy, Exponential, Laplace, Normal, Uniform
from tenfold.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from tenfold.distributions.distribution import Distribution
from tenfold.distributions.multivariate import Independent, MultivariateNormal, summed
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """A decorator that registers a function as the divergence between two classes of distributions."""
    for each in (type_p, type_q):
        if not isinstance(each, type):  # libraries have bases of their own, so any class will do
            raise ArgumentError(f"register_kl: {each!r} is no class of distributions")

    def declare(rule: Rule) -> Rule:
        _KL_REGISTRY[type_p, type_q] = rule
        return rule

    return declare


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p ‖ q), for each element of the batch."""
    steps = [
        (type(p).__mro__.index(of_p) + type(q).__mro__.index(of_q), type(p).__mro__.index(of_p), rule)
        for (of_p, of_q), rule in _KL_REGISTRY.items()
        if isinstance(p, of_p) and isinstance(q, of_q)
    ]
    if not steps:
        raise no_rule(p, q)
    return min(steps, key=lambda step: step[:2])[2](p, q)


def no_rule(p: Distribution, q: Distribution) -> UnsupportedError:
    return UnsupportedError(
        f"there is no rule for KL({type(p).__name__} ‖ {type(q).__name__})",
        help="declare one with @register_kl, or average p.log_prob(x) - q.log_prob(x) over draws of p",
    )


def _infinite(like: Tensor) -> Tensor:
    return aten("full_like")(like, math.inf)


@register_kl(Normal, Normal)
def _(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log()) / 2


@register_kl(Laplace, Laplace)
def _(p: Laplace, q: Laplace) -> Tensor:
    away = (p.loc - q.loc).abs()
    return (q.scale / p.scale).log() + (p.scale * (-away / p.scale).exp() + away) / q.scale - 1


@register_kl(Cauchy, Cauchy)
def _(p: Cauchy, q: Cauchy) -> Tensor:
    return (((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)).log()


@register_kl(Exponential, Exponential)
def _(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Uniform, Uniform)
def _(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Uniform, Normal)
def _(p: Uniform, q: Normal) -> Tensor:
    square = (p.variance + (p.mean - q.loc) ** 2) / q.variance
    return -p.entropy() + (square + (2 * math.pi * q.variance).log()) / 2


@register_kl(Normal, Uniform)
@register_kl(Normal, Exponential)
@register_kl(Laplace, Exponential)
def _(p: Distribution, q: Distribution) -> Tensor:
    """p has values that q has not."""
    return _infinite(p.mean + q.mean)


@register_kl(Bernoulli, Bernoulli)
def _(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = aten("softplus")
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    yes = yes.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    return yes + no.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)


@register_kl(Geometric, Geometric)
def _(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _(p: Poisson, q: Poisson) -> Tensor:
    return aten("xlogy")(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return terms.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Independent, Independent)
def _(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise UnsupportedError("kl_divergence: the events of both have the same number of dimensions")
    return summed(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ArgumentError(f"kl_divergence: vectors of {p.event_shape[0]} and of {q.event_shape[0]} numbers")
    solve = lambda of: aten("linalg_solve_triangular")(q.scale_tril, of, upper=False)
    spread = solve(p.scale_tril).square().sum([-2, -1])
    away = solve((p.loc - q.loc).unsqueeze(-1)).square().sum([-2, -1])
    return q._half_log_det() - p._half_log_det() + (spread + away - p.event_shape[0]) / 2
