"""What people run once, or with other sizes each time: the programs of the rows in `cold.py`, written for
PyTorch's names, so that `lib` is `torch` or `tenfold`; those without modules also for JAX. As a process,
`python -m benchmarks.cold_programs tenfold first_step` prints the seconds that a program takes after the
import."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any


def first_print(lib: Any) -> None:
    str(lib.tensor([1.0, 2.0, 3.0]).softmax(0))


def first_step(lib: Any) -> None:
    """A training step of a 4-8-1 net with Adam."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = lib.optim.Adam(model.parameters())
    loss = model(lib.ones(5, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()


def new_shape(lib: Any, size: int) -> float:
    return (lib.ones(size, 3) @ lib.ones(3, 2)).tanh().sum().item()


def grown(lib: Any, sequence: Any) -> Any:
    """A sequence that is longer by one, and read."""
    sequence = lib.cat([sequence, lib.ones(1)])
    sequence.sum().item()
    return sequence


def read_in_loop(lib: Any, rounds: int) -> float:
    """One number read in each iteration."""
    x = lib.ones(8)
    total = 0.0
    for _ in range(rounds):
        total += x.sum().item()
    return total


class Policy:
    """REINFORCE on a walk of chance: episodes of varying length, an update after each."""

    def __init__(self, lib: Any):
        import numpy as np

        nn = lib.nn
        self.lib, self.draws = lib, np.random.default_rng(0)
        self.model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.optimizer = lib.optim.Adam(self.model.parameters(), lr=1e-2)

    def episode(self) -> None:
        lib, kept = self.lib, []
        state = self.draws.normal(size=4).astype("float32")
        for _ in range(int(self.draws.integers(8, 40))):
            chances = self.model(lib.tensor(state)).softmax(-1)
            action = int(self.draws.random() < chances[1].item())
            kept.append(chances[action].log())
            state = (0.9 * state + self.draws.normal(size=4) * (action + 0.5)).astype("float32")
        returns = lib.arange(len(kept), 0, -1, dtype=lib.float32)
        loss = -(lib.stack(kept) * (returns - returns.mean())).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


WIDTH, HEADS, VOCABULARY, LONGEST = 64, 4, 128, 128


def gpt(lib: Any, layers: int = 2) -> Any:
    nn, functional = lib.nn, lib.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
            self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            length = x.shape[0]
            heads = [
                each.view(length, HEADS, WIDTH // HEADS).transpose(0, 1)
                for each in self.attention(self.norms[0](x)).split(WIDTH, dim=1)
            ]
            mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.projection(mixed.transpose(0, 1).reshape(length, WIDTH))
            return x + self.mlp(self.norms[1](x))

    class Gpt(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LONGEST, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.blocks(self.tokens(tokens) + self.places(lib.arange(tokens.shape[0]))))

    return Gpt()


def sample_tokens(lib: Any, count: int = 40) -> None:
    """Tokens drawn from a GPT of two layers, each time from the whole sequence computed anew."""
    model = gpt(lib)
    tokens = lib.zeros(1, dtype=lib.int64)
    with lib.no_grad():
        for _ in range(count):
            following = lib.multinomial(model(tokens)[-1].softmax(-1), 1)
            tokens = lib.cat([tokens, following])
    tokens.tolist()


def first_print_jax() -> None:
    import jax

    str(jax.nn.softmax(jax.numpy.array([1.0, 2.0, 3.0])))


PROGRAMS: dict[str, Callable[[Any], None]] = {
    "first_print": first_print,
    "first_step": first_step,
    "sample_tokens": sample_tokens,
}


def main(contender: str, program: str) -> float:
    """The seconds that a program takes in this process, after the import."""
    if contender == "jax":
        import jax.numpy  # noqa: F401

        run: Callable[[], None] = first_print_jax
    elif contender == "torch":
        import torch

        run = lambda: PROGRAMS[program](torch)
    else:
        import tenfold

        run = lambda: PROGRAMS[program](tenfold)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
