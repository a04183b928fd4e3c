"""Modules as TorchScript from their sources, read by PyTorch."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

import tenfold as tn
import tenfold.nn.functional as F
from tenfold.exporting.script_modules import module_archive
from tests.exporting.torchscript import X, by_pytorch


class Block(tn.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = tn.nn.LayerNorm(width), tn.nn.Linear(width, width)

    def forward(self, x):
        return x + F.gelu(self.linear(self.norm(x)))


class Network(tn.nn.Module):
    """A model with layers in a list, a helper method, a buffer, numbers, and choices of both kinds."""

    def __init__(self):
        super().__init__()
        self.blocks = tn.nn.ModuleList([Block(4) for _ in range(2)])
        self.head = tn.nn.Sequential(tn.nn.Linear(4, 3, bias=False), tn.nn.ReLU(), tn.nn.BatchNorm1d(3))
        self.offset = 3
        self.register_buffer("scale", tn.full((3,), 2.0))

    def doubled(self, x, times: int):
        for _ in range(times):
            x = x * 2
        return x

    def forward(self, x, times: int = 2):
        for block in self.blocks:
            x = block(x)
        if bool(x.sum() > 0):
            x = self.doubled(x, times)
        if self.offset == 3 and self.head is not None:
            x = self.head(x)
        return x * self.scale + self.offset


def test_a_scripted_model_keeps_its_choices_loops_and_names():
    tn.manual_seed(0)
    ours = Network().eval()
    scripted = tn.jit.script(ours)
    theirs = by_pytorch(scripted)
    for sign in (1, -1):
        for times in (0, 3):
            x = X * sign
            expected = ours(tn.from_numpy(x), times).detach().numpy()
            found = theirs(torch.tensor(x), times).detach().numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert {name for name, _ in theirs.named_parameters()} == {name for name, _ in ours.named_parameters()}
    assert set(theirs.state_dict()) == set(ours.state_dict())
    assert scripted.blocks[0].linear.weight is ours.blocks[0].linear.weight
    np.testing.assert_array_equal(
        scripted(tn.from_numpy(X)).numpy(force=True), ours(tn.from_numpy(X)).numpy(force=True)
    )


class Looped(tn.nn.Module):
    """Loops over layers inside other loops, with an `else`."""

    def __init__(self):
        super().__init__()
        self.layers = tn.nn.ModuleList([tn.nn.ReLU(), tn.nn.Tanh()])

    def forward(self, x, n: int):
        for _ in range(n):
            for layer in self.layers:
                x = layer(x) + 1
            else:
                x = x * 3
        return x


class Broken(Looped):
    def forward(self, x, n: int):
        for _ in range(n):
            for layer in self.layers:
                x = layer(x)
                if bool(x.sum() > 0):
                    break
        return x


class Forgotten(Looped):
    def forward(self, x, n: int):
        layer = self.layers[0]
        if n > 2:
            for layer in self.layers:
                x = layer(x)
        return layer(x)


def test_loops_over_layers_are_unrolled_with_their_else():
    ours, theirs = Looped(), torch.jit.load(io.BytesIO(module_archive(Looped())))
    for n in (0, 2):
        found, expected = theirs(torch.tensor(X), n), ours(tn.from_numpy(X), n)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)
    with pytest.raises(
        tn.UnsupportedError, match=r"line \d+: a loop over layers is unrolled, and has no break"
    ):
        module_archive(Broken())
    with pytest.raises(RuntimeError, match="undefined value layer"):
        torch.jit.load(io.BytesIO(module_archive(Forgotten())))


LAYERS = [
    (tn.nn.Conv2d(3, 2, 3, padding=1), (1, 3, 8, 8)), (tn.nn.MaxPool2d(2), (1, 3, 8, 8)),
    (tn.nn.AdaptiveAvgPool2d(1), (1, 3, 8, 8)), (tn.nn.BatchNorm2d(3), (2, 3, 4, 4)),
    (tn.nn.Flatten(), (2, 3, 4)), (tn.nn.GroupNorm(2, 4), (2, 4)), (tn.nn.Softmax(-1), (2, 4)),
    (tn.nn.Dropout(0.5), (2, 4)), (tn.nn.GELU(), (2, 4)), (tn.nn.Hardtanh(), (2, 4)),
    (tn.nn.ZeroPad2d(1), (1, 1, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=lambda each: type(each).__name__)
def test_layers_are_scripted(layer, shape):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    theirs = torch.jit.load(io.BytesIO(module_archive(layer.eval())))
    expected = layer(tn.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(theirs(torch.tensor(x)).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_layer_that_torchscript_cannot_express_is_refused_with_its_line():
    with pytest.raises(
        tn.UnsupportedError, match=r"Embedding.forward, line \d+: embedding takes other arguments"
    ):
        tn.jit.save(tn.jit.script(tn.nn.Embedding(3, 2)), io.BytesIO())
