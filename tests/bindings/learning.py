"""Two tasks that bindings learn from the weights written here, and the losses of PyTorch's hundred steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from tenfold.command.demo import digits as data


def xor(path: Path) -> list[float]:
    """Two inputs, eight units, one result; Adam on all four pairs."""
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    y = torch.tensor([[0.0], [1], [1], [0]])
    return _learn(path, x, y, (2, 8, 1), torch.nn.functional.binary_cross_entropy_with_logits, 0.05)


def digits(path: Path) -> list[float]:
    """64 pixels, 32 units, 10 digits; Adam on the first 256 images."""
    training, _ = data.load()
    x = torch.from_numpy(training.images.numpy()[:256].reshape(256, 64).copy())
    y = torch.from_numpy(training.labels.numpy()[:256].copy())
    return _learn(path, x, y, (64, 32, 10), torch.nn.functional.cross_entropy, 0.01)


def all_digits(path: Path) -> None:
    """All images, those for training first, and their labels, for the examples to learn from."""
    training, test = data.load()
    images = np.concatenate([training.images.numpy(), test.images.numpy()]).reshape(-1, 64)
    labels = np.concatenate([training.labels.numpy(), test.labels.numpy()])
    save_file(
        {"images": torch.from_numpy(images.copy()), "labels": torch.from_numpy(labels.copy())}, str(path)
    )


def _learn(path: Path, x: torch.Tensor, y: torch.Tensor, sizes: tuple, loss_of, lr: float) -> list[float]:
    torch.manual_seed(7)
    inner, hidden, outer = sizes
    weights = {
        "w1": torch.randn(hidden, inner) * 0.5,
        "b1": torch.zeros(hidden),
        "w2": torch.randn(outer, hidden) * 0.5,
        "b2": torch.zeros(outer),
    }
    save_file({"x": x, "y": y, **weights}, str(path))
    parameters = [each.clone().requires_grad_() for each in weights.values()]
    adam = torch.optim.Adam(parameters, lr=lr)
    losses = []
    for _ in range(100):
        w1, b1, w2, b2 = parameters
        hidden_units = torch.tanh(torch.nn.functional.linear(x, w1, b1))
        loss = loss_of(torch.nn.functional.linear(hidden_units, w2, b2), y)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses
