"""Distributions of which each draw is of one of several: mixtures by a categorical choice."""

from __future__ import annotations

from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError
from tenfold.distributions import constraints
from tenfold.distributions.discrete import Categorical
from tenfold.distributions.distribution import Distribution, Shape
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one family, which lie along the last dimension of their batch

    weights = tn.distributions.Categorical(tn.ones(2))
    parts = tn.distributions.Normal(tn.tensor([-1.0, 1.0]), tn.ones(2))
    tn.distributions.MixtureSameFamily(weights, parts).log_prob(tn.tensor(0.0))  # -1.4189
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError("MixtureSameFamily: mixture_distribution is a Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ArgumentError("MixtureSameFamily: component_distribution is a Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch = component_distribution.batch_shape
        count = mixture_distribution.param_shape[-1]
        if not batch or batch[-1] != count:
            raise ArgumentError(
                f"MixtureSameFamily: {count} choices, but the components' batch is {tuple(batch)}"
            )
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made._component_distribution = self._component_distribution.expand(
            (*batch_shape, self._num_component)
        )
        made._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        made._num_component, made._event_ndims = self._num_component, self._event_ndims
        return made

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Tensor:
        """The chances of the components, beside their events."""
        probs = self._mixture_distribution.probs
        return probs.reshape([*probs.shape, *[1] * self._event_ndims])

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        along, weights = -1 - self._event_ndims, self._weights()
        within = (weights * self._component_distribution.variance).sum(along)
        away = self._component_distribution.mean - self.mean.unsqueeze(along)
        return within + (weights * away**2).sum(along)

    def _beside(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    def cdf(self, x: Tensor) -> Tensor:
        places = self._component_distribution.cdf(self._beside(x))
        return (places * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        each = self._component_distribution.log_prob(self._beside(self._checked(value)))
        chances = aten("log_softmax")(self._mixture_distribution.logits, -1)
        return (each + chances).logsumexp(-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            drawn = self._component_distribution.sample(sample_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            along = drawn.ndim - 1 - self._event_ndims
            place = chosen.reshape([*chosen.shape, *[1] * (self._event_ndims + 1)])
            place = place.expand([*drawn.shape[:along], 1, *drawn.shape[along + 1 :]])
            return drawn.gather(along, place).squeeze(along)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
