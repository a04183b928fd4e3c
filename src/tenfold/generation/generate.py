"""`generate`: the tokens that a model continues its prompts with."""

from __future__ import annotations

from collections.abc import Generator as PythonGenerator, Iterator
from typing import Any, Literal, overload

import numpy as np

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, located
from tenfold.generation.decoder import NONE, Decoder
from tenfold.generation.prompts import Prompts, as_prompts, as_rows, room
from tenfold.generation.sampling import Sampling
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.generators import Generator
from tenfold.tensor.interchange import tensor

KEPT = "_decoder"  # the attribute of a model that has its programs


@overload
def generate(
    model: Any, tokens: Any, max_new_tokens: int = ..., *, temperature: float = ..., top_k: int | None = ...,
    top_p: float | None = ..., seed: int | None = ..., stop_token: int | None = ...,
    stream: Literal[False] = ...,
) -> Tensor: ...  # fmt: skip


@overload
def generate(
    model: Any, tokens: Any, max_new_tokens: int = ..., *, temperature: float = ..., top_k: int | None = ...,
    top_p: float | None = ..., seed: int | None = ..., stop_token: int | None = ...,
    stream: Literal[True],
) -> Iterator[Tensor]: ...  # fmt: skip


@located
def generate(
    model: Any,
    tokens: Any,
    max_new_tokens: int = 20,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    stop_token: int | None = None,
    stream: bool = False,
) -> Tensor | Iterator[Tensor]:
    """The tokens with which a model continues prompts: (count, n), n at most `max_new_tokens`.

    `tokens` is a tensor (count, length), or a list of prompts of any lengths. At temperature 0 the best token
    follows; else one is drawn: see `Sampling`. The same seed draws the same tokens; without one they follow
    `tenfold.manual_seed`. A row ends with `stop_token`, which fills the rest of it; generation ends when all
    rows have. All of it is one program, a loop on the device, if the model has a cache or says by an
    attribute `causal` that scores do not depend on later tokens; else one for each token. With `stream` it is
    an iterator over the tokens (count,) as they come, by a program for each.
    """
    sampling = Sampling(temperature, top_k, top_p)
    sampling.check()
    if max_new_tokens < 1:
        raise ArgumentError(f"max_new_tokens must be at least 1, not {max_new_tokens}")
    device = next((parameter.device for parameter in model.parameters()), aten("zeros")([]).device)
    limit = getattr(model, "context", None)
    rows = as_rows(tokens)
    longest = max(map(len, rows))
    total = longest + max_new_tokens
    if limit is not None and total > limit:
        raise ArgumentError(
            f"{longest} tokens and {max_new_tokens} new ones are more than the model's {limit}",
            help=f"shorten the prompts, or let max_new_tokens be at most {limit - longest}",
        )
    decoder = _decoder(model)
    random = None
    if not sampling.is_greedy:
        random = _random(seed, device)
        number = lambda each: tensor(each, dtype=dtypes.float32, device=device)
        sampling = Sampling(number(temperature), top_k, None if top_p in (None, 1) else number(top_p))
    stop = NONE if stop_token is None else stop_token
    if not decoder.causal:
        steps = _ended(_whole_texts(decoder, rows, device, sampling, random), max_new_tokens, stop)
        return steps if stream else aten("stack")(list(steps), 1)
    prompts = as_prompts(rows, device, limit)
    size = max(room(total, limit), prompts.tokens.shape[1])
    if stream:
        return _ended(_steps(decoder, prompts, size, sampling, random), max_new_tokens, stop)
    place = lambda each: tensor(np.asarray(each, np.int64)).to(device)
    out = place(np.full((prompts.tokens.shape[0], room(max_new_tokens, None)), stop))
    out, count = decoder.loop(prompts, out, place(max_new_tokens), place(stop), size, sampling, random)
    return place(out.cpu().numpy()[:, : count.item()])


def _random(seed: int | None, device: Any) -> Tensor:
    """The state of a generator for one call, which no other changes: from its seed, or else from one that the
    device's default generator draws."""
    if seed is None:
        seed = aten("empty")([], dtype=dtypes.int64, device=device).random_().item()
    return Generator(device).manual_seed(seed).state


Steps = PythonGenerator[Tensor, Tensor, None]  # gives the next tokens, and is sent what becomes of them


def _steps(decoder: Decoder, prompts: Prompts, size: int, sampling: Sampling, random: Tensor | None) -> Steps:
    state = decoder.state(prompts.tokens.shape[0], size, prompts.tokens)
    positions = prompts.lengths
    last = yield decoder.first(prompts, state, sampling, random)
    while True:
        last = yield decoder.next(last, positions, state, sampling, random)
        positions = positions + 1


def _whole_texts(
    decoder: Decoder, rows: list[np.ndarray], device: Any, sampling: Sampling, random: Tensor | None
) -> Steps:
    """Each text is read at its own length; those of one length together."""
    lengths = np.array([len(row) for row in rows])
    groups = [np.flatnonzero(lengths == each) for each in np.unique(lengths)]
    place = lambda array: tensor(np.asarray(array, np.int64)).to(device)
    texts = [place(np.stack([rows[i] for i in group])) for group in groups]
    members = [place(group) for group in groups]
    order = place(np.argsort(np.concatenate(groups)))
    while True:
        scores = aten("cat")([decoder.whole(text) for text in texts])[order]
        last = yield decoder.chosen(scores, sampling, random)
        texts = [
            aten("cat")([text, last[group][:, None]], 1) for text, group in zip(texts, members, strict=True)
        ]


def _ended(steps: Steps, wanted: int, stop: int) -> Iterator[Tensor]:
    """The tokens that steps give, each row filled up once it has stopped."""
    last = next(steps)
    stopped = last == stop
    yield last
    for _ in range(wanted - 1):
        if stop != NONE and stopped.all().item():
            return
        last = steps.send(last)
        if stop != NONE:
            last = last.masked_fill(stopped, stop)
            stopped = stopped | (last == stop)
        yield last


def _decoder(model: Any) -> Decoder:
    """The programs of a model, which are kept with it."""
    found = model.__dict__.get(KEPT)
    if found is None or found.model is not model:
        found = model.__dict__[KEPT] = Decoder(model)
    return found
