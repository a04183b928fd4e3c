"""The same call of `nn.functional` here and in PyTorch: values, and gradients of a weighted sum of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tenfold as tn

Call = Callable[[Any, Any], Any]


class Drawn:
    """Arrays by name, the same ones in every run; floating-point ones take part in gradients."""

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed)
        self.arrays: dict[str, np.ndarray] = {}

    def normal(self, **shapes: tuple[int, ...]) -> Drawn:
        self.arrays |= {name: self._rng.normal(size=shape) for name, shape in shapes.items()}
        return self

    def uniform(self, low: float, high: float, **shapes: tuple[int, ...]) -> Drawn:
        self.arrays |= {name: self._rng.uniform(low, high, shape) for name, shape in shapes.items()}
        return self

    def integers(self, low: int, high: int, **shapes: tuple[int, ...]) -> Drawn:
        self.arrays |= {name: self._rng.integers(low, high, shape) for name, shape in shapes.items()}
        return self


def compare(call: Call, drawn: Drawn, *, rtol: float = 1e-7, atol: float = 1e-9) -> None:
    """`call(F, tensors)` in both, in float64: its results and the gradients of all floating-point tensors."""
    theirs = {k: torch.tensor(v, requires_grad=v.dtype.kind == "f") for k, v in drawn.arrays.items()}
    expected = call(torch.nn.functional, _Named(theirs))
    expected = expected if isinstance(expected, tuple) else (expected,)
    weights = [np.random.default_rng(i).uniform(0.5, 2, tuple(e.shape)) for i, e in enumerate(expected)]
    total = sum((e * torch.tensor(w)).sum() for e, w in zip(expected, weights, strict=True))
    total.backward()

    ours = {k: tn.tensor(v, requires_grad=v.dtype.kind == "f") for k, v in drawn.arrays.items()}
    found = call(tn.nn.functional, _Named(ours))
    found = found if isinstance(found, tuple) else (found,)
    total = sum((f * tn.tensor(w)).sum() for f, w in zip(found, weights, strict=True))
    total.backward()
    tn.eval(*found, *[each.grad for each in ours.values() if each.grad is not None])

    for mine, golden in zip(found, expected, strict=True):
        assert tuple(mine.shape) == tuple(golden.shape)
        np.testing.assert_allclose(mine.detach().numpy(), golden.detach().numpy(), rtol, atol)
    for name, tensor in theirs.items():
        if tensor.grad is not None:
            assert ours[name].grad is not None, f"no gradient of {name}"
            np.testing.assert_allclose(
                ours[name].grad.numpy(), tensor.grad.numpy(), rtol, atol, err_msg=f"gradient of {name}"
            )


class _Named:
    def __init__(self, tensors: dict[str, Any]):
        self.__dict__.update(tensors)
