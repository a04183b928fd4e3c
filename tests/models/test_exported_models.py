"""The example models through every door: exported to the torch dialect, StableHLO and linalg, run on XLA and
IREE, and equal to PyTorch on the same weights, where PyTorch runs the same source."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tests.examples.test_models import assert_near, random_state, scores_of, source

# How a model is made by the names of its file, and the shape of its input: images or tokens.
SMALL: dict[str, tuple[str, Any, tuple[int, ...]]] = {
    "resnet50": (
        "resnet",
        lambda names: names.ResNet(names.Bottleneck, (1, 1, 1, 1), classes=5, width=4),
        (1, 3, 64, 64),
    ),
    "mobilenet_v3": (
        "mobilenet_v3",
        lambda names: names.MobileNetV3(
            names.SMALL[:1] + names.LARGE[:1] + names.SMALL[4:5], hidden=16, classes=5, width=0.25
        ),
        (2, 3, 32, 32),
    ),
    "unet": ("unet", lambda names: names.UNet(classes=3, width=2), (1, 3, 32, 38)),
    "vit": (
        "vit",
        lambda names: names.vit_b_16(size=16, patch=8, layers=1, heads=2, width=16, hidden=32, classes=5),
        (2, 3, 16, 16),
    ),
    "gpt2": (
        "gpt2",
        lambda names: names.gpt2(vocabulary=40, context=16, width=24, layers=1, heads=3),
        (2, 11),
    ),
    "lstm_lm": (
        "lstm_lm",
        lambda names: names.LSTMLanguageModel(40, width=12, hidden=12, tied=True),
        (7, 3),
    ),
}
FULL: dict[str, tuple[str, Any, tuple[int, ...]]] = {
    "resnet50": ("resnet", lambda names: names.resnet50(), (1, 3, 224, 224)),
    "mobilenet_v3": ("mobilenet_v3", lambda names: names.mobilenet_v3_large(), (1, 3, 224, 224)),
    "unet": ("unet", lambda names: names.UNet(), (1, 3, 96, 96)),
    "vit": ("vit", lambda names: names.vit_b_16(), (1, 3, 224, 224)),
    "gpt2": ("gpt2", lambda names: names.gpt2(), (1, 64)),
    "lstm_lm": ("lstm_lm", lambda names: names.word_model(), (35, 2)),
}
# Which dialect is run where: torch-mlir's own lowering to StableHLO is the torch dialect's way to XLA.
# It does not lower causal attention there.
BEYOND_TORCH_MLIR = {("gpt2", "torch", "xla")}
ROUTES = [
    ("stablehlo", "xla"),
    ("torch", "xla"),
    ("stablehlo", "iree"),
    ("torch", "iree"),
    ("linalg", "iree"),
]


@cache
def prepared(size: str, name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Our model, an input, and what PyTorch gives for it on the same weights."""
    file, make, shape = (SMALL if size == "small" else FULL)[name]
    golden, model = make(source(file, "torch")), make(source(file, "tenfold"))
    state = random_state(golden)
    golden.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    model.load_state_dict({key: tn.tensor(value) for key, value in state.items()})
    random = np.random.default_rng(1)
    tokens = len(shape) == 2
    inputs = random.integers(0, 40, shape) if tokens else random.normal(size=shape).astype(np.float32)
    with torch.no_grad():
        expected = scores_of(golden.eval(), torch.tensor(inputs)).numpy()
    return model.eval(), inputs, expected


def run(dialect: str, engine: str, model: Any, inputs: np.ndarray) -> np.ndarray:
    exported = tn.export(model, (tn.tensor(inputs),), dialect=dialect, parameters="literals")
    if engine == "iree":
        loaded: Any = tn.load_vmfb(exported.build())
    elif dialect == "stablehlo":
        loaded = tn.load_stablehlo(exported.bytecode())
    else:
        loaded = tn.load_stablehlo(exported.module.lowered("stablehlo").bytecode())
    found = loaded(inputs)
    return (found[0] if isinstance(found, tuple) else found).numpy()


def compare(size: str, name: str, dialect: str, engine: str) -> None:
    model, inputs, expected = prepared(size, name)
    if (name, dialect, engine) in BEYOND_TORCH_MLIR:
        with pytest.raises(tn.UnsupportedError, match="torch-mlir cannot lower this module to stablehlo"):
            run(dialect, engine, model, inputs)
    else:
        assert_near(run(dialect, engine, model, inputs), expected)


# Each dialect once; the others where time allows.
QUICK = {("stablehlo", "xla"), ("torch", "iree")}
SMALL_ROUTES = [each if each in QUICK else pytest.param(*each, marks=pytest.mark.slow) for each in ROUTES]


@pytest.mark.parametrize(("dialect", "engine"), SMALL_ROUTES)
@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_equals_pytorch(name, dialect, engine):
    compare("small", name, dialect, engine)


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "engine"), ROUTES)
@pytest.mark.parametrize("name", FULL)
def test_a_model_of_full_size_equals_pytorch(name, dialect, engine):
    compare("full", name, dialect, engine)
