"""The example models: the names and shapes of the usual checkpoints, the values of PyTorch on the same weights,
and a step of training. The golden twin of a model is its own source, run with PyTorch in Tenfold's place."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import tenfold as tn

MODELS = Path(__file__).parent.parent.parent / "examples" / "models"


@cache
def source(name: str, package: str) -> SimpleNamespace:
    """The names that a model's file defines when it is run on `package`."""
    path = MODELS / f"{name}.py"
    text = re.sub(r"^(import|from) tenfold\b", rf"\1 {package}", path.read_text(), flags=re.MULTILINE)
    names: dict = {"__name__": f"{package}_{name}"}
    exec(compile(text, str(path), "exec"), names)
    return SimpleNamespace(**names)


# A file, what it calls a model, options that make it small, and the shape of its input: images or tokens. None
# drops anything: other random numbers than PyTorch's would do that.
SMALL = [
    ("resnet", "resnet18", {"classes": 5, "width": 4}, (2, 3, 40, 40)),
    ("resnet", "resnet50", {"classes": 5, "width": 2}, (2, 3, 40, 40)),
    ("mobilenet_v3", "mobilenet_v3_large", {"classes": 5, "width": 0.1, "hidden": 16, "dropout": 0.0},
     (3, 3, 40, 40)),
    ("mobilenet_v3", "mobilenet_v3_small", {"classes": 5, "width": 0.1, "hidden": 16, "dropout": 0.0},
     (3, 3, 40, 40)),
    ("unet", "UNet", {"classes": 3, "width": 4}, (2, 3, 35, 38)),
    ("vit", "vit_b_16", {"size": 32, "patch": 8, "layers": 2, "heads": 2, "width": 16, "hidden": 32,
     "classes": 5}, (2, 3, 32, 32)),
    ("gpt2", "gpt2", {"vocabulary": 40, "context": 16, "width": 24, "layers": 2, "heads": 3, "dropout": 0.0},
     (2, 11)),
    ("lstm_lm", "LSTMLanguageModel", {"vocabulary": 40, "width": 12, "hidden": 12, "dropout": 0.0,
     "tied": True}, (7, 3)),
]  # fmt: skip


def random_state(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """Values for all that a model holds, of a size that neither dies out nor blows up along its layers."""
    random = np.random.default_rng(0)
    state = {}
    for key, value in model.state_dict().items():
        if value.dtype == torch.int64:  # how many batches a normalisation has seen
            state[key] = np.array(3)
        elif value.ndim == 1 and key.endswith(("weight", "running_var")):
            state[key] = random.uniform(0.5, 1.5, value.shape).astype(np.float32)
        else:
            fan = max(1, int(np.prod(value.shape[1:])))
            state[key] = random.normal(0, fan**-0.5, value.shape).astype(np.float32)
    return state


def scores_of(model, x):
    """The scores alone: a recurrent model gives its state as well."""
    found = model(x)
    return found[0] if isinstance(found, tuple) else found


def two_losses(module, model, compiled, inputs: np.ndarray) -> list[float]:
    """Those of two steps of gradient descent towards the first class or token."""
    axis = -1 if inputs.ndim == 2 else 1
    optimizer = module.optim.SGD(model.train().parameters(), lr=0.01, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = -scores_of(model, x).log_softmax(axis).select(axis, 0).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(step)
    return [run(module.tensor(inputs)).item() for _ in range(2)]


def assert_near(ours: np.ndarray, theirs: np.ndarray, what: str = "") -> None:
    scale = max(1e-3, float(np.abs(theirs).max()))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * scale, err_msg=what)


@pytest.mark.parametrize(("file", "name", "options", "shape"), SMALL, ids=[each[1] for each in SMALL])
def test_values_and_training_equal_pytorch(file, name, options, shape):
    golden = getattr(source(file, "torch"), name)(**options)
    model = getattr(source(file, "tenfold"), name)(**options)
    state = random_state(golden)
    golden.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    model.load_state_dict({key: tn.tensor(value) for key, value in state.items()})
    random = np.random.default_rng(1)
    inputs = random.integers(0, 40, shape) if len(shape) == 2 else random.normal(size=shape).astype("f")

    with torch.no_grad(), tn.no_grad():
        expected = scores_of(golden.eval(), torch.tensor(inputs))
        found = scores_of(model.eval(), tn.tensor(inputs))
    assert_near(found.numpy(), expected.numpy())

    losses = two_losses(torch, golden, lambda step: step, inputs)
    assert losses[1] < losses[0]
    np.testing.assert_allclose(two_losses(tn, model, tn.compile, inputs), losses, rtol=1e-4)
    trained = model.state_dict()
    assert list(trained) == list(state)
    for key, value in golden.state_dict().items():
        assert_near(trained[key].numpy(), value.numpy(), key)
