"""The choice of the next token from a model's scores: the best one, or one drawn at random."""

from __future__ import annotations

from typing import NamedTuple

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.generators import Generator

LOWEST = float("-inf")


class Sampling(NamedTuple):
    """How the next token is chosen. At temperature 0, it is the best one. Otherwise it is drawn with
    probability softmax(scores / temperature) from the `top_k` best tokens, and of these from the fewest that
    together have a probability of at least `top_p`. To change a temperature or a `top_p` without recompiling,
    pass a tensor."""

    temperature: float | Tensor = 0.0
    top_k: int | None = None
    top_p: float | Tensor | None = None

    @property
    def is_greedy(self) -> bool:
        return not isinstance(self.temperature, Tensor) and self.temperature == 0

    def check(self) -> None:
        if not isinstance(self.temperature, Tensor) and not self.temperature >= 0:
            raise ArgumentError(f"a temperature is 0 or more, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ArgumentError(f"top_k must be at least 1, not {self.top_k}")
        if not isinstance(self.top_p, Tensor | None) and not 0 < self.top_p <= 1:
            raise ArgumentError(f"top_p is a probability above 0, not {self.top_p}")


def sample(scores: Tensor, sampling: Sampling, generator: Generator | None = None) -> Tensor:
    """The next token of each row of scores (count, vocabulary): (count,) of int64.

    >>> scores = tenfold.tensor([[0.1, 2.0, 1.0]])
    >>> tenfold.generation.sample(scores, tenfold.generation.Sampling())
    tensor([1])
    """
    sampling.check()
    scores = scores.to(dtypes.float32)
    if sampling.is_greedy:
        return scores.argmax(-1)
    scores = scores / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < scores.shape[-1]:
        best = scores.topk(sampling.top_k, -1)[0]
        scores = scores.masked_fill(scores < best[..., -1:], LOWEST)
    if sampling.top_p is not None:
        scores = _nucleus(scores, sampling.top_p)
    # The largest of log p plus Gumbel noise is drawn with probability p; the noise is -log of an exponential.
    noise = aten("empty_like")(scores).exponential_(generator=generator)
    return (scores - noise.log()).argmax(-1)


def _nucleus(scores: Tensor, top_p: float | Tensor) -> Tensor:
    """The scores with all left out but the best that together have a probability of at least `top_p`."""
    ordered = scores.sort(-1, descending=True)[0]
    chances = ordered.softmax(-1)
    before = chances.cumsum(-1) - chances  # the probability of all better ones
    smallest = ordered.masked_fill(before >= top_p, float("inf")).amin(-1, keepdim=True)
    return scores.masked_fill(scores < smallest, LOWEST)
