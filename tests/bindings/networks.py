"""Layers of other languages beside PyTorch's: what is asked of each binding, and what PyTorch answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tenfold.capi import layers

__all__ = ["LAYERS", "LOSSES", "asked"]

# A layer by the arguments that every language takes in this order, and the shape of its input.
LAYERS: dict[str, tuple[list[Any], tuple[int, ...]]] = {
    "Linear": ([3, 2], (4, 3)),
    "Conv1d": ([2, 4, 3], (1, 2, 7)),
    "Conv2d": ([2, 4, [3, 2], 2, 1, 1, 2], (1, 2, 6, 7)),
    "Conv3d": ([1, 2, 2], (1, 1, 3, 3, 3)),
    "BatchNorm1d": ([3], (5, 3)),
    "BatchNorm2d": ([3], (2, 3, 4, 4)),
    "BatchNorm3d": ([2, 1e-4, 0.3], (2, 2, 2, 2, 2)),
    "LayerNorm": ([[3, 4]], (2, 3, 4)),
    "GroupNorm": ([2, 4], (2, 4, 3)),
    "MaxPool1d": ([3, 2, 1], (1, 2, 7)),
    "MaxPool2d": ([2], (1, 1, 4, 4)),
    "MaxPool3d": ([2, 1], (1, 1, 3, 3, 3)),
    "AvgPool1d": ([3, 2, 1], (1, 2, 7)),
    "AvgPool2d": ([2, 1], (1, 1, 4, 4)),
    "AvgPool3d": ([2], (1, 1, 4, 4, 4)),
    "Embedding": ([5, 3], ()),
    "Dropout": ([0.0], (5,)),
    "Flatten": ([], (2, 3, 4)),
    "ReLU": ([], (5,)),
    "LeakyReLU": ([0.2], (5,)),
    "ELU": ([], (5,)),
    "GELU": ([], (5,)),
    "SiLU": ([], (5,)),
    **{
        name: ([], (9,))
        for name in ("ReLU6", "SELU", "Mish", "Sigmoid", "LogSigmoid", "Hardswish", "Hardsigmoid")
    },
    "Tanh": ([], (5,)),
    "Softplus": ([], (5,)),
    "Softmax": ([1], (2, 3)),
    "LogSoftmax": ([1], (2, 3)),
}
LOSSES: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]] = {
    "MSELoss": lambda: (torch.randn(3, 2), torch.randn(3, 2)),
    "L1Loss": lambda: (torch.randn(3, 2), torch.randn(3, 2)),
    "SmoothL1Loss": lambda: (torch.randn(3, 2), torch.randn(3, 2)),
    "HuberLoss": lambda: (torch.randn(3, 2), torch.randn(3, 2)),
    "CrossEntropyLoss": lambda: (torch.randn(3, 4), torch.tensor([0, 3, 1])),
    "NLLLoss": lambda: (torch.randn(3, 4).log_softmax(1), torch.tensor([0, 3, 1])),
    "BCELoss": lambda: (torch.rand(4), torch.rand(4).round()),
    "KLDivLoss": lambda: (torch.randn(3, 4).log_softmax(1), torch.rand(3, 4).softmax(1)),
    "BCEWithLogitsLoss": lambda: (torch.randn(4), torch.rand(4).round()),
}


def asked() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """What a binding is given, by name: NAME.input and NAME.state.PART; and what it should give, by NAME."""
    assert {*LAYERS, *LOSSES} == {layer.name for layer in layers.LAYERS}
    torch.manual_seed(0)
    given: dict[str, torch.Tensor] = {}
    expected: dict[str, torch.Tensor] = {}
    for name, (arguments, shape) in LAYERS.items():
        layer = getattr(nn, name)(*arguments)
        given[f"{name}.input"] = torch.tensor([4, 0, 4]) if name == "Embedding" else 4 * torch.randn(shape)
        for part, tensor in layer.state_dict().items():
            if part != "num_batches_tracked":
                given[f"{name}.state.{part}"] = tensor.clone()
        expected[name] = layer(given[f"{name}.input"]).detach()
    for name, make in LOSSES.items():
        given[f"{name}.input"], given[f"{name}.target"] = make()
        expected[name] = getattr(nn, name)()(given[f"{name}.input"], given[f"{name}.target"]).reshape(1)
    return given, expected
