"""Special functions at places where digits are easily lost."""

from __future__ import annotations

import math

import numpy as np
import torch

import tenfold as tn


def test_lgamma_keeps_its_digits_near_its_zeros():
    steps = 2.0 ** -np.arange(1, 23)
    places = np.array([1.0, 2.0, *(1 + steps), *(1 - steps), *(2 + steps), *(2 - steps)], np.float32)
    x = tn.tensor(places, requires_grad=True)
    y = tn.lgamma(x)
    y.sum().backward()
    np.testing.assert_allclose(y.tolist(), [math.lgamma(each) for each in places], rtol=1e-6)
    np.testing.assert_allclose(x.grad.tolist(), torch.digamma(torch.tensor(places)).tolist(), rtol=2e-5)
