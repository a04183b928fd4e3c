"""The four models whose training steps are timed, written once for PyTorch's names: `module` is `torch` or
`tenfold`. Their JAX twins, from the same weights, are in `jax_models.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Task:
    """A model, the batch it is trained on, and the learning rate of Adam."""

    name: str
    title: str
    build: Callable[[Any], Any]
    batch: Callable[[], tuple[np.ndarray, np.ndarray]]
    lr: float = 1e-3


def xor(module: Any) -> Any:
    nn = module.nn
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))


def xor_batch() -> tuple[np.ndarray, np.ndarray]:
    return np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32), np.array([0, 1, 1, 0])


def mlp(module: Any) -> Any:
    nn = module.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def mlp_batch() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.normal(size=(128, 784)).astype(np.float32), generator.integers(0, 10, 128)


def cnn(module: Any) -> Any:
    nn = module.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def cnn_batch() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.normal(size=(64, 1, 28, 28)).astype(np.float32), generator.integers(0, 10, 64)


LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH = 4, 256, 8, 256, 128


def gpt(module: Any) -> Any:
    """A small GPT as it is usually written: pre-norm blocks, causal attention, exact gelu."""
    nn, functional = module.nn, module.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before_attention = nn.LayerNorm(WIDTH)
            self.attention = nn.Linear(WIDTH, 3 * WIDTH)
            self.projection = nn.Linear(WIDTH, WIDTH)
            self.before_mlp = nn.LayerNorm(WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            heads = [
                each.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
                for each in self.attention(self.before_attention(x)).split(width, dim=2)
            ]
            mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.before_mlp(x))

    class Gpt(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Parameter(module.zeros(LENGTH, WIDTH))
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x)).view(-1, VOCABULARY)

    return Gpt()


def gpt_batch() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    tokens = generator.integers(0, VOCABULARY, (8, LENGTH + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].reshape(-1)


TASKS = {
    task.name: task
    for task in (
        Task("xor", "XOR 2-8-2", xor, xor_batch),
        Task("mlp", "MLP 784-512-512-10, batch 128", mlp, mlp_batch),
        Task("cnn", "CNN of two 3x3 convolutions, batch 64", cnn, cnn_batch),
        Task("gpt", "GPT of 4 layers, width 256, batch 8x128", gpt, gpt_batch),
    )
}


def training_step(module: Any, model: Any, lr: float) -> Callable[[Any, Any], Any]:
    """One step of Adam on the cross entropy, as every tutorial of PyTorch writes it."""
    optimizer = module.optim.Adam(model.parameters(), lr=lr)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = module.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step
