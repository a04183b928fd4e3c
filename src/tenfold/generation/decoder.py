"""The programs that generate with a model: all tokens in one loop on the device, or one at a time."""

from __future__ import annotations

from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.compiler import compile
from tenfold.func.control_flow import while_loop
from tenfold.generation.prompts import Prompts
from tenfold.generation.sampling import Sampling, sample
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.generators import Generator

NONE = -1  # a stop token that no model gives


class Decoder:
    """A model with its programs. They are compiled when they are first needed, and kept with the model. A
    program that draws tokens is given the state of its call's generator, and advances it."""

    def __init__(self, model: Any):
        self.model = model
        self.cached = callable(getattr(model, "make_cache", None))
        # Whether later tokens, and so the zeros after a text, leave the scores of earlier ones as they are.
        self.causal = self.cached or bool(getattr(model, "causal", False))
        self.loop = compile(self._loop)
        self.first = compile(self._first)
        self.next = compile(self._next, mode="reduce-overhead")
        self.whole = compile(self._whole)
        self.chosen = compile(_chosen)

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        return None  # a copy of a model makes its own

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def state(self, count: int, size: int, like: Tensor) -> Any:
        """What is kept from one token to the next, with room for `size` tokens of each row: the model's
        cache, or the whole text."""
        if self.cached:
            return self.model.make_cache(count, size)
        return aten("zeros")([count, size], dtype=dtypes.int64, device=like.device)

    # The steps

    def _first(self, prompts: Prompts, state: Any, sampling: Sampling, random: Tensor | None) -> Tensor:
        """Read the prompts and give the first new token of each."""
        tokens, lengths = prompts.tokens, prompts.lengths
        with no_grad():
            if not self.cached:
                state[:, : tokens.shape[1]] = tokens
                scores = _at(self.model(state), lengths - 1)
            else:
                count, size = tokens.shape
                positions = aten("arange")(size, device=tokens.device).expand(count, size)
                scores = self.model(tokens, state, positions, lengths - 1)[:, 0]
            return _chosen(scores, sampling, random)

    def _next(
        self, last: Tensor, positions: Tensor, state: Any, sampling: Sampling, random: Tensor | None
    ) -> Tensor:
        """The token after the `last` one of each row, which stands at its position."""
        with no_grad():
            if not self.cached:
                rows = aten("arange")(last.shape[0], device=last.device)
                state[rows, positions] = last
                scores = _at(self.model(state), positions)
            else:
                first = aten("zeros_like")(positions)
                scores = self.model(last[:, None], state, positions[:, None], first)[:, 0]
            return _chosen(scores, sampling, random)

    def _whole(self, text: Tensor) -> Tensor:
        """The scores of what follows texts of one length."""
        with no_grad():
            return self.model(text)[:, -1]

    def _loop(
        self, prompts: Prompts, out: Tensor, wanted: Tensor, stop: Tensor, size: int, sampling: Sampling,
        random: Tensor | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """All tokens, until so many are there as `wanted` or every row has stopped; and how many there are.
        `out` (count, room) is what is returned where there are none."""
        state = self.state(prompts.tokens.shape[0], size, prompts.tokens)
        last = self._first(prompts, state, sampling, random)
        out = _put(out, 0 * wanted, last)
        stopped = last == stop

        def goes_on(step: Tensor, last: Tensor, out: Tensor, stopped: Tensor) -> Tensor:
            return (step < wanted) & ~stopped.all()

        def round(step: Tensor, last: Tensor, out: Tensor, stopped: Tensor) -> tuple[Tensor, ...]:
            found = self._next(last, prompts.lengths + step - 1, state, sampling, random)
            found = aten("where")(stopped, stop, found)
            return step + 1, found, _put(out, step, found), stopped | (found == stop)

        step, _, out, _ = while_loop(goes_on, round, (0 * wanted + 1, last, out, stopped))
        return out, step


def _chosen(scores: Tensor, sampling: Sampling, random: Tensor | None) -> Tensor:
    return sample(scores, sampling, None if random is None else Generator.on(random))


def _at(scores: Tensor, places: Tensor) -> Tensor:
    """The scores (count, length, vocabulary) at a place of each row."""
    return scores[aten("arange")(scores.shape[0], device=scores.device), places]


def _put(out: Tensor, step: Tensor, tokens: Tensor) -> Tensor:
    return out.index_copy(1, step.reshape(1), tokens[:, None])
