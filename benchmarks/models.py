"""The models whose training steps are timed, written once for PyTorch's names: `module` is `torch` or
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


CHANNELS, BLOCKS = 32, 3


def convnext(module: Any) -> Any:
    """Blocks of a ConvNeXt: a depthwise convolution, then a perceptron at each place."""
    nn = module.nn

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(CHANNELS, CHANNELS, 7, padding=3, groups=CHANNELS)
            self.norm = nn.LayerNorm(CHANNELS)
            self.wide, self.narrow = nn.Linear(CHANNELS, 4 * CHANNELS), nn.Linear(4 * CHANNELS, CHANNELS)
            self.gelu = nn.GELU()

        def forward(self, x: Any) -> Any:
            y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
            return x + self.narrow(self.gelu(self.wide(y))).permute(0, 3, 1, 2)

    return _pooled(module, nn.Conv2d(3, CHANNELS, 4, stride=4), Block)


def efficientnet(module: Any) -> Any:
    """Blocks of an EfficientNet: inverted bottlenecks with squeeze and excitation."""
    nn = module.nn

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            wide, norm = 4 * CHANNELS, lambda count: nn.BatchNorm2d(count, track_running_stats=False)
            self.expand, self.first = nn.Conv2d(CHANNELS, wide, 1, bias=False), norm(wide)
            self.depthwise = nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False)
            self.second, self.silu = norm(wide), nn.SiLU()
            self.squeeze, self.excite = nn.Linear(wide, CHANNELS // 4), nn.Linear(CHANNELS // 4, wide)
            self.project, self.third = nn.Conv2d(wide, CHANNELS, 1, bias=False), norm(CHANNELS)

        def forward(self, x: Any) -> Any:
            y = self.silu(self.second(self.depthwise(self.silu(self.first(self.expand(x))))))
            scale = self.excite(self.silu(self.squeeze(y.mean((2, 3))))).sigmoid()
            return x + self.third(self.project(y * scale[:, :, None, None]))

    return _pooled(module, nn.Conv2d(3, CHANNELS, 3, stride=2, padding=1), Block)


def _pooled(module: Any, stem: Any, block: Any) -> Any:
    nn = module.nn
    pool = nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(stem, *[block() for _ in range(BLOCKS)], pool, nn.Flatten(), nn.Linear(CHANNELS, 10))


def image_batch() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.normal(size=(8, 3, 32, 32)).astype(np.float32), generator.integers(0, 10, 8)


TASKS = {
    task.name: task
    for task in (
        Task("xor", "XOR 2-8-2", xor, xor_batch),
        Task("mlp", "MLP 784-512-512-10, batch 128", mlp, mlp_batch),
        Task("cnn", "CNN of two 3x3 convolutions, batch 64", cnn, cnn_batch),
        Task("gpt", "GPT of 4 layers, width 256, batch 8x128", gpt, gpt_batch),
        Task("convnext", "three ConvNeXt blocks, batch 8", convnext, image_batch),
        Task("efficientnet", "three EfficientNet blocks, batch 8", efficientnet, image_batch),
    )
}
TIMED = [TASKS[name] for name in ("xor", "mlp", "cnn", "gpt")]  # also when they are warm


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
