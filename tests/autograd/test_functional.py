"""Whole derivatives of functions, as PyTorch names them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn


def functional_results(lib):
    f = lib.autograd.functional
    x, y = (lib.tensor(each, dtype=lib.float64) for each in ([0.5, -1.0, 2.0], [1.5, 0.3]))
    pair = lambda a, b: (a.exp() * b.sum(), (a.sum() * b).sin())
    number = lambda a, b: (a.sum() * b.prod()) ** 2 + (a**3).sum()
    return [
        f.jacobian(lambda a: a.cumsum(0) ** 2, x, create_graph=True),
        f.jacobian(pair, (x, y), strategy="forward-mode", vectorize=True),
        f.jacobian(lambda a: (a * 2, lib.ones(2, dtype=lib.float64)), x),
        f.hessian(number, (x, y)),
        f.hessian(lambda a: a.norm() ** 3, x),
        f.vjp(pair, (x, y), (x, y)),
        f.jvp(pair, (x, y), (x, y)),
        f.vhp(number, (x, y), (x, y)),
        f.hvp(lambda a: (a**3).sum(), x, x),
    ]


def test_functional_derivatives_are_pytorchs():
    def leaves(found):
        return (
            [each for part in found for each in leaves(part)] if isinstance(found, (tuple, list)) else [found]
        )

    ours, theirs = leaves(functional_results(tn)), leaves(functional_results(torch))
    tn.eval(*ours)
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our.detach().numpy(), their.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_functional_says_what_it_needs():
    f, x = tn.autograd.functional, tn.ones(2)
    with pytest.raises(tn.GradientError, match="does not depend"):
        f.jacobian(lambda a: a.detach(), x, strict=True)
    with pytest.raises(tn.GradientError, match="v is needed"):
        f.vjp(lambda a: a * 2, x)
    with pytest.raises(tn.GradientError, match="one number"):
        f.hessian(lambda a: a * 2, x)
