"""Distributions of counts: of successes in so many trials, of each outcome, and of successes before so many
failures."""

from __future__ import annotations

from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.distributions import constraints
from tenfold.distributions.discrete import ByCategorical, _Binary, _one_of
from tenfold.distributions.distribution import Shape, broadcast_all
from tenfold.distributions.gammas import standard_gammas
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["Binomial", "Multinomial", "NegativeBinomial"]


class _Trials(_Binary):
    """By a probability and a count of trials."""

    total_count: Tensor

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        _one_of(type(self).__name__, probs, logits)
        given = probs if logits is None else logits
        count, value = broadcast_all(total_count, given)
        self.total_count = count.to(value.dtype)
        by_probs = logits is None
        super().__init__(value if by_probs else None, None if by_probs else value, validate_args)


class Binomial(_Trials):
    """The binomial distribution: the number of successes in `total_count` trials, each of probability p

    tn.distributions.Binomial(2, 0.5).log_prob(tn.tensor(1.0))  # -0.6931
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        super().__init__(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = list(self._extended_shape(sample_shape))
        with no_grad():
            return aten("binomial")(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value, n = self._checked(value), self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        either = aten("logaddexp")(self.logits, aten("zeros_like")(self.logits))
        return ways + value * self.logits - n * either

    def entropy(self) -> Tensor:
        """The sum over all counts, where all have as many trials."""
        values = self.enumerate_support(False)
        logs = self.log_prob(values)
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max().item())
        if self.total_count.min().item() != most:
            raise UnsupportedError("Binomial: values are told only where all have the same total_count")
        values = aten("arange")(most + 1, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape([-1, *[1] * len(self._batch_shape)])
        return values.expand([-1, *self._batch_shape]) if expand else values


class NegativeBinomial(_Trials):
    """The negative binomial distribution: the number of successes before `total_count` failures

    Each trial succeeds with probability p.

        tn.distributions.NegativeBinomial(1, 0.5).log_prob(tn.tensor(1.0))  # -1.3863
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = list(self._extended_shape(sample_shape))
        with no_grad():
            rate = standard_gammas(self.total_count.expand(shape)) * self.logits.exp().expand(shape)
            return aten("poisson")(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        value, n = self._checked(value), self.total_count
        logsigmoid = aten("log_sigmoid")
        unnormalised = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return unnormalised - ways.masked_fill(n + value == 0.0, 0.0)


class Multinomial(ByCategorical):
    """The multinomial distribution: how often each outcome comes in `total_count` draws

    tn.distributions.Multinomial(2, tn.tensor([0.5, 0.5])).log_prob(tn.tensor([1.0, 1.0]))  # -0.6931
    """

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        if not isinstance(total_count, int):
            raise ArgumentError("Multinomial: total_count is one number for the whole batch")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.total_count = self.total_count
        return made

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        chosen = self._categorical.sample((self.total_count, *sample_shape))
        return aten("one_hot")(chosen, self.event_shape[0]).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        logits, value = aten("broadcast_tensors")([self.logits, value])
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = aten("full")([], float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        binomial = Binomial(self.total_count, probs=self.probs, validate_args=False)
        values = binomial.enumerate_support(False)[1:]
        terms = (binomial.log_prob(values).exp() * (values + 1).lgamma()).sum([0, -1])
        return n * self._categorical.entropy() - (n + 1).lgamma() + terms
