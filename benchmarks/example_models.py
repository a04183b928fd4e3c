"""The models of `examples/models` as tasks: of their full depth, which is what compiling takes time by, and
narrow, so that a step is short. Their JAX twins are in `jax_example_models.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.harness import ROOT
from benchmarks.models import Task

CLASSES, WORDS = 10, 256


@cache
def source(name: str, package: str) -> SimpleNamespace:
    """The names that a model's file defines when it is run on `package`, "tenfold" or "torch"."""
    path = ROOT / "examples" / "models" / f"{name}.py"
    text = re.sub(r"^(import|from) tenfold\b", rf"\1 {package}", path.read_text(), flags=re.MULTILINE)
    names: dict[str, Any] = {"__name__": f"{package}_{name}"}
    exec(compile(text, str(path), "exec"), names)
    return SimpleNamespace(**names)


def scoring(module: Any, model: Any) -> Any:
    """A model whose scores are rows, one for each label."""

    class Scores(module.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            scores = self.model(x)
            scores = scores[0] if isinstance(scores, tuple) else scores
            scores = scores.permute(0, 2, 3, 1) if scores.ndim == 4 else scores
            return scores.reshape(-1, scores.shape[-1])

    return Scores()


def task(name: str, title: str, make: Callable[[Any], Any], shape: tuple[int, ...], labels: int) -> Task:
    def build(module: Any) -> Any:
        return scoring(module, make(source(name, module.__name__)))

    def batch() -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(0)
        tokens = len(shape) == 2
        x = generator.integers(0, WORDS, shape) if tokens else generator.normal(size=shape).astype("float32")
        return x, generator.integers(0, CLASSES, labels)

    return Task(name, title, build, batch)


TASKS = {
    each.name: each
    for each in (
        task(
            "resnet",
            "ResNet-50, width 16, batch 4 of 64x64",
            lambda names: names.resnet50(classes=CLASSES, width=16),
            (4, 3, 64, 64),
            4,
        ),
        task(
            "mobilenet_v3",
            "MobileNetV3 large, width 0.5, batch 4 of 64x64",
            lambda names: names.mobilenet_v3_large(classes=CLASSES, width=0.5, hidden=64, dropout=0.0),
            (4, 3, 64, 64),
            4,
        ),
        task(
            "unet",
            "U-Net, width 8, batch 2 of 32x32",
            lambda names: names.UNet(classes=CLASSES, width=8),
            (2, 3, 32, 32),
            2 * 32 * 32,
        ),
        task(
            "vit",
            "ViT of 12 layers, width 64, batch 4 of 32x32",
            lambda names: names.vit_b_16(size=32, patch=8, heads=4, width=64, hidden=256, classes=CLASSES),
            (4, 3, 32, 32),
            4,
        ),
        task(
            "gpt2",
            "GPT-2 of 12 layers, width 96, batch 4x64",
            lambda names: names.gpt2(vocabulary=WORDS, context=64, width=96, heads=4, dropout=0.0),
            (4, 64),
            4 * 64,
        ),
        task(
            "llama",
            "Llama of 22 layers, width 96, batch 2x64",
            lambda names: names.Llama(vocabulary=WORDS, width=96, hidden=256, heads=8, shared_heads=2),
            (2, 64),
            2 * 64,
        ),
        task(
            "lstm_lm",
            "LSTM of 2 layers, width 64, batch 4x35",
            lambda names: names.LSTMLanguageModel(WORDS, width=64, hidden=64, dropout=0.0),
            (35, 4),
            35 * 4,
        ),
    )
}
