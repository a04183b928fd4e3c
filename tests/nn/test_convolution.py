"""Layers derived from convolutions, written as for PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn


def standardised(xp):
    class Standardised(xp.nn.Conv2d):
        """Its weights have mean zero, as in nets that do without batch normalisation."""

        def forward(self, input):
            weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return self._conv_forward(input, weight, self.bias)

    return Standardised


def halved(xp):
    class Halved(xp.nn.Conv1d):
        def _conv_forward(self, input, weight, bias):
            return super()._conv_forward(input, weight, bias) / 2

    return Halved


@pytest.mark.parametrize(
    ("layer", "options", "shape"),
    [
        (standardised, {"padding": 1, "padding_mode": "reflect"}, (2, 3, 5, 5)),
        (standardised, {"padding": "same", "bias": False}, (2, 3, 5, 5)),
        (halved, {"stride": 2}, (2, 3, 7)),
    ],
)
def test_a_derived_layer_convolves_with_other_weights(layer, options, shape):
    numbers = np.random.default_rng(0)
    given = numbers.standard_normal(shape).astype("float32")
    theirs = layer(torch)(3, 4, 3, **options)
    ours = layer(tn)(3, 4, 3, **options)
    ours.load_state_dict({name: tn.from_numpy(each.numpy()) for name, each in theirs.state_dict().items()})
    expected = theirs(torch.from_numpy(given)).detach().numpy()
    np.testing.assert_allclose(ours(tn.from_numpy(given)).detach().numpy(), expected, rtol=1e-5, atol=1e-5)
