"""Discrete distributions: of whole numbers and of choices. They take probabilities or logits. The logit of
one outcome is log p - log(1 - p); of several outcomes it is log p, up to a constant."""

from __future__ import annotations

from typing import Any

from tenfold.autograd.grad_mode import enable_grad, no_grad
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError
from tenfold.distributions import constraints
from tenfold.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    Shape,
    broadcast_all,
    uniforms,
    within,
)
from tenfold.functional import broadcast_tensors
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "Bernoulli",
    "Categorical",
    "Geometric",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Poisson",
]


def _one_of(name: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ArgumentError(f"{name}: give either probs or logits")


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-log p of a target between 0 and 1, exact for large logits too."""
    return aten("binary_cross_entropy_with_logits")(logits, target, reduction=0)


class _ByProbability(Distribution):
    """By probabilities, or their logits; the other is computed when it is asked for."""

    probs: Tensor
    logits: Tensor
    _logits_of: Any  # of probabilities within bounds
    _probs_of: Any

    def __getattr__(self, name: str) -> Any:
        with enable_grad():  # it stays, whoever asked first
            if name == "logits" and "probs" in vars(self):
                self.logits = self._logits_of(within(self.probs))
                return self.logits
            if name == "probs" and "logits" in vars(self):
                self.probs = self._probs_of(self.logits)
                return self.probs
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    @property
    def _param(self) -> Tensor:
        return vars(self)["probs" if "probs" in vars(self) else "logits"]

    @property
    def param_shape(self) -> Any:
        return self._param.size()


class _Binary(_ByProbability):
    """By the probability of one outcome."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        _one_of(type(self).__name__, probs, logits)
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        (value,) = broadcast_all(given)
        setattr(self, name, value)
        super().__init__(value.shape, validate_args=validate_args)

    def _logits_of(self, probs: Tensor) -> Tensor:
        return probs.log() - (-probs).log1p()

    def _probs_of(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()


class Bernoulli(_Binary, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability p, and 0 with 1 - p

    tn.distributions.Bernoulli(0.25).log_prob(tn.tensor(1.0))  # -1.3863
    """

    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return mode.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return aten("bernoulli")(self.probs.expand(list(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_tensors(self.logits, self._checked(value))
        return -_cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = aten("arange")(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape([2, *[1] * len(self._batch_shape)])
        return values.expand([2, *self._batch_shape]) if expand else values


class Geometric(_Binary):
    """The geometric distribution: the number of failures before the first success, of probability p

    tn.distributions.Geometric(0.5).log_prob(tn.tensor(1.0))  # -1.3863
    """

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(probs, logits, validate_args)
        if self._validate_args and "probs" in vars(self):
            self._validate_within(probs=(self.probs, constraints.positive))

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return aten("zeros_like")(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            drawn = uniforms(self.probs, self._extended_shape(sample_shape))
            return (drawn.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        probs, value = broadcast_tensors(self.probs, self._checked(value))
        failed = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failed).log1p() + probs.log()

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs) / self.probs


class Poisson(ExponentialFamily):
    """The Poisson distribution, of probability λᵏ·exp(-λ) / k! for the count k

    tn.distributions.Poisson(2.0).log_prob(tn.tensor(1.0))  # -1.3069
    """

    rate: Tensor
    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return aten("poisson")(self.rate.expand(list(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        rate, value = broadcast_tensors(self.rate, self._checked(value))
        return aten("xlogy")(value, rate) - rate - (value + 1).lgamma()


class Categorical(_ByProbability):
    """The categorical distribution: one of 0 … K - 1, with probabilities in proportion to `probs`

    The last dimension of `probs` counts the categories; `logits` are their unnormalized logarithms instead.

        tn.distributions.Categorical(tn.tensor([1.0, 3.0])).log_prob(tn.tensor(1))  # -0.2877
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        _one_of("Categorical", probs, logits)
        given = probs if logits is None else logits
        if given.ndim < 1:
            raise ArgumentError("Categorical: probs and logits have at least one dimension")
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def _logits_of(self, probs: Tensor) -> Tensor:
        return probs.log()

    def _probs_of(self, logits: Tensor) -> Tensor:
        return aten("softmax")(logits, -1)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made._num_events = self._num_events
        return made

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return aten("full_like")(self.probs[..., 0], float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            count = 1
            for each in sample_shape:
                count *= each
            drawn = aten("multinomial")(rows, count, True)
            return drawn.mT.reshape(list(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        chosen = self._checked(value).long().unsqueeze(-1)
        chosen, logits = broadcast_tensors(chosen, self.logits)
        return logits.gather(-1, chosen[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        finite = self.logits.clamp(min=dtypes.finfo(self.logits.dtype).min)
        return -(finite * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = aten("arange")(self._num_events, device=self._param.device)
        values = values.reshape([-1, *[1] * len(self._batch_shape)])
        return values.expand([-1, *self._batch_shape]) if expand else values


class ByCategorical(Distribution):
    """Vectors of an entry for each outcome, by the chances that a Categorical holds."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made._categorical = self._categorical.expand(batch_shape)
        return made

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape


class OneHotCategorical(ByCategorical):
    """The categorical distribution of vectors that are 1 at the category drawn and 0 elsewhere

    tn.distributions.OneHotCategorical(tn.tensor([1.0, 3.0])).log_prob(tn.tensor([0.0, 1.0]))  # -0.2877
    """

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return aten("one_hot")(self._categorical.mode, self.probs.shape[-1]).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        chosen = self._categorical.sample(sample_shape)
        return aten("one_hot")(chosen, self.probs.shape[-1]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self.event_shape[0]
        values = aten("eye")(count, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape([count, *[1] * len(self.batch_shape), count])
        return values.expand([count, *self.batch_shape, count]) if expand else values

    def __repr__(self) -> str:
        return repr(self._categorical).replace("Categorical", type(self).__name__, 1)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose draws pass their gradients straight through to the probabilities

    tn.distributions.OneHotCategoricalStraightThrough(tn.ones(3)).rsample().shape  # [3]
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
