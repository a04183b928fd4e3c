"""Sizes that change: a sequence that is computed anew for each token, and batches of every length. The rows
that count compiles have their limit as the peer."""

from __future__ import annotations

import itertools
import os
import time
import unittest.mock
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tenfold as tn
from benchmarks.harness import OURS, Benchmark, Sample
from tenfold.runtime.executables import counting_compiles

LIBRARIES = {OURS: tn, "PyTorch": torch}
WORDS, WIDTH, HEADS, LAYERS, TOKENS = 65, 64, 4, 2, 500
LONGEST, BATCHES = 256, 200


def gpt(module: Any) -> Any:
    """A small GPT that takes a sequence of any length."""
    nn, functional = module.nn, module.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
            self.inner, self.outer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            heads = [
                each.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
                for each in self.inner(self.norms[0](x)).split(width, dim=2)
            ]
            mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.outer(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.norms[1](x))

    class Gpt(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(512, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.head = nn.Linear(WIDTH, WORDS)

        def forward(self, tokens: Any) -> Any:
            x = self.words(tokens) + self.places(module.arange(tokens.shape[1]))
            return self.head(self.blocks(x)[:, -1])

    return Gpt().eval()


def growing(module: Any) -> Any:
    """Appends the likeliest token to a sequence."""
    model = gpt(module)

    def grow(tokens: Any) -> Any:
        return module.cat([tokens, model(tokens).argmax(-1, keepdim=True)], 1)

    return tn.compile(grow) if module is tn else grow


def generate(module: Any, grow: Any) -> None:
    with module.no_grad():
        tokens = module.tensor(np.array([[1]]))
        for _ in range(TOKENS):
            tokens = grow(tokens)
        tokens.numpy()


def lazy_training(module: Any) -> Any:
    """A training step, nothing of it compiled by hand."""
    layers = [module.nn.Linear(32, 64), module.nn.LayerNorm(64), module.nn.ReLU(), module.nn.Linear(64, 8)]
    model = module.nn.Sequential(*layers)
    optimizer = module.optim.Adam(model.parameters(), lr=1e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = module.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def training(module: Any) -> Any:
    step = lazy_training(module)
    return tn.compile(step) if module is tn else step


def epoch(module: Any, step: Any) -> None:
    chance = np.random.default_rng(0)
    for length in chance.integers(1, LONGEST + 1, BATCHES):
        x = chance.normal(size=(length, 32)).astype(np.float32)
        loss = step(module.tensor(x), module.tensor(chance.integers(0, 8, length)))
    loss.item()


def loading(module: Any) -> Any:
    """A training step, and a loader of four workers whose dataset reads numbers."""
    data = module.utils.data
    rows = module.tensor(np.random.default_rng(0).normal(size=(128, 8)).astype(np.float32))

    class Rows(data.Dataset):  # type: ignore[name-defined]
        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, place: int) -> Any:
            row = rows[place]
            return row * row.sum().item(), row.mean()

    model = module.nn.Sequential(module.nn.Linear(8, 16), module.nn.Tanh(), module.nn.Linear(16, 1))
    optimizer = module.optim.Adam(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x).squeeze(1) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    compiled = tn.compile(step) if module is tn else step
    return compiled, lambda: data.DataLoader(Rows(), batch_size=16, num_workers=4)


def loaded_epoch(module: Any, made: Any) -> None:
    step, load = made
    for x, y in load():
        step(x, y).item()


def compiles_after_the_first_step(folder: Path) -> Mapping[str, Sample]:
    def sample() -> float:
        step, load = loading(tn)
        batches = itertools.chain(load(), load())
        step(*next(batches)).item()
        with counting_compiles() as count:
            for batch in batches:
                step(*batch).item()
        return float(int(count))

    with unittest.mock.patch.dict(os.environ, TENFOLD_CACHE_DIR=""):
        first = sample()
    return {OURS: lambda: first, "limit": lambda: 1.0}


def timed(run: Any, module: Any, made: Any) -> Sample:
    def sample() -> float:
        start = time.perf_counter()
        run(module, made)
        return time.perf_counter() - start

    return sample


def compiles(run: Any, make: Any) -> Sample:
    def sample() -> float:
        with counting_compiles() as count:
            run(tn, make(tn))
        return float(int(count))

    return sample


def contenders(run: Any, make: Any) -> Any:
    def prepared(folder: Path) -> Mapping[str, Sample]:
        return {name: timed(run, module, make(module)) for name, module in LIBRARIES.items()}

    return prepared


def counted(run: Any, make: Any, limit: int) -> Any:
    """How many programs a first run compiles, none of them known before."""

    def prepared(folder: Path) -> Mapping[str, Sample]:
        with unittest.mock.patch.dict(os.environ, TENFOLD_CACHE_DIR=""):
            first = compiles(run, make)()
        return {OURS: lambda: first, "limit": lambda: float(limit)}

    return prepared


BENCHMARKS = (
    Benchmark(
        "tokens",
        f"{TOKENS} tokens of a small GPT, the sequence computed anew for each",
        "PyTorch",
        1.0,
        contenders(generate, growing),
        repeats=3,
    ),
    Benchmark(
        "token-compiles",
        f"programs compiled for {TOKENS} tokens",
        "limit",
        1.0,
        counted(generate, growing, 10),
        repeats=1,
        unit="compiles",
    ),
    Benchmark(
        "batches",
        f"{BATCHES} training steps on batches of 1 to {LONGEST}",
        "PyTorch",
        1.0,
        contenders(epoch, training),
        repeats=3,
    ),
    Benchmark(
        "batch-compiles",
        f"programs compiled for batches of 1 to {LONGEST}",
        "limit",
        1.0,
        counted(epoch, training, 8),
        repeats=1,
        unit="compiles",
    ),
    Benchmark(
        "lazy-batches",
        f"{BATCHES} lazy training steps on batches of 1 to {LONGEST}",
        "PyTorch",
        1.0,
        contenders(epoch, lazy_training),
        repeats=3,
    ),
    Benchmark(
        "lazy-batch-compiles",
        f"programs compiled for lazy steps on batches of 1 to {LONGEST}",
        "limit",
        1.0,
        counted(epoch, lazy_training, 8),
        repeats=1,
        unit="compiles",
    ),
    Benchmark(
        "loader",
        "an epoch of 8 batches by four workers that read numbers",
        "PyTorch",
        1.0,
        contenders(loaded_epoch, loading),
        repeats=3,
    ),
    Benchmark(
        "loader-compiles",
        "programs compiled after the first step of that",
        "limit",
        0.0,
        compiles_after_the_first_step,
        repeats=1,
        unit="compiles",
    ),
)
