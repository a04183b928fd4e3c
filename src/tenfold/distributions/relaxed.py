"""Discrete distributions made smooth by a temperature, so that gradients flow through their draws."""

from __future__ import annotations

from typing import Any

from tenfold.base import dtypes
from tenfold.distributions import constraints
from tenfold.distributions.discrete import ByCategorical, _Binary
from tenfold.distributions.distribution import Shape, uniforms
from tenfold.distributions.elementwise_transforms import ExpTransform, SigmoidTransform
from tenfold.distributions.transformed import TransformedDistribution
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


def _apart(like: Tensor, shape: Shape) -> Tensor:
    """Uniform draws that are neither 0 nor 1."""
    eps = dtypes.finfo(like.dtype).eps
    return uniforms(like, shape).clamp(eps, 1 - eps)


class LogitRelaxedBernoulli(_Binary):
    """The logit of a relaxed Bernoulli draw."""

    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.temperature = self.temperature
        return made

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        drawn = _apart(self._param, self._extended_shape(sample_shape))
        return (drawn.log() - (-drawn).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        away = self.logits - self._checked(value) * self.temperature
        return _log(self.temperature) + away - 2 * away.exp().log1p()


def _log(temperature: Any) -> Any:
    return (temperature if isinstance(temperature, Tensor) else aten("full")([], float(temperature))).log()


class _Relaxed(TransformedDistribution):
    """What a temperature keeps from being one of few, by that which it transforms."""

    has_rsample = True

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits


class RelaxedBernoulli(_Relaxed):
    """A Bernoulli distribution made continuous: draws in (0, 1), nearer to 0 and 1 at lower temperatures

    tn.distributions.RelaxedBernoulli(0.5, tn.tensor([0.3])).rsample().shape  # [1]
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(ByCategorical):
    """The logarithm of a relaxed one-hot draw."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.temperature = self.temperature
        return made

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        drawn = _apart(self.logits, self._extended_shape(sample_shape))
        scores = (self.logits - (-drawn.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        size = self.event_shape[0]
        logits, value = aten("broadcast_tensors")([self.logits, self._checked(value)])
        scale = (size - 1) * _log(self.temperature) + aten("full_like")(logits[..., 0], float(size)).lgamma()
        score = logits - value * self.temperature
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """A one-hot categorical distribution made continuous: nearer to corners of the simplex when colder

    tn.distributions.RelaxedOneHotCategorical(0.5, tn.ones(3)).rsample().shape  # [3]
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
