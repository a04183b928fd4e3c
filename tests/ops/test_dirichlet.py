"""Gradients of points of the simplex, beside PyTorch's and beside SciPy's inverse distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special

import tenfold as tn


def _points(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points drawn, and points anywhere, of concentrations from 1e-3 to 1e4"""
    a, b = 10 ** rng.uniform(-3, 4, (2, count))
    ends = np.where(
        rng.random(count) < 0.5, 10 ** rng.uniform(-30, 0, count), 1 - 10 ** rng.uniform(-15, 0, count)
    )
    x = np.where(rng.random(count) < 0.5, rng.beta(a, b), ends)
    return np.clip(x, 1e-37, 1 - 2.0**-53), a, b


def test_the_gradient_at_a_point_is_pytorchs():
    x, a, b = _points(np.random.default_rng(0), 20000)
    expected = torch._dirichlet_grad(*(torch.tensor(each) for each in (x, a, a + b)))
    found = tn.ops.aten._dirichlet_grad(*(tn.tensor(each) for each in (x, a, a + b)))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


def test_the_gradient_at_a_point_is_that_of_the_inverse_distribution():
    rng = np.random.default_rng(1)
    a, b = 10 ** rng.uniform(-1, 2, (2, 2000))
    places = rng.uniform(0.02, 0.98, 2000)
    x, step = special.betaincinv(a, b, places), 1e-5 * a
    inside = (x > 1e-6) & (x < 1 - 1e-6)
    slope = (special.betaincinv(a + step, b, places) - special.betaincinv(a - step, b, places)) / (2 * step)
    found = tn.ops.aten._dirichlet_grad(*(tn.tensor(each) for each in (x, a, a + b))).numpy() * (1 - x)
    np.testing.assert_allclose(found[inside], slope[inside], rtol=0.01)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_draws_are_pytorchs(dtype):
    concentrations = np.random.default_rng(2).uniform(0.2, 20, (50, 4)).astype(dtype)
    weights = np.random.default_rng(3).normal(size=(50, 4)).astype(dtype)
    ours = tn.tensor(concentrations, requires_grad=True)
    draws = tn.distributions.Dirichlet(ours).rsample()
    (draws * tn.tensor(weights)).sum().backward()
    backward = torch.distributions.dirichlet._Dirichlet_backward
    expected = backward(*(torch.tensor(e) for e in (draws.detach().numpy(), concentrations, weights)))
    np.testing.assert_allclose(ours.grad.numpy(), expected.numpy(), rtol=1e-3 if dtype == "float32" else 1e-6)


def test_gradients_of_beta_draws_are_pytorchs():
    a, b = [tn.tensor(c, dtype=tn.float64, requires_grad=True) for c in ([0.5, 2, 30], [1.5, 0.1, 50])]
    draws = tn.distributions.Beta(a, b).rsample()
    draws.sum().backward()
    x = torch.tensor(draws.detach().numpy())
    both = torch.stack([torch.tensor(each.detach().numpy()) for each in (a, b)], -1)
    towards = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(3, 2)
    backward = torch.distributions.dirichlet._Dirichlet_backward
    expected = backward(torch.stack([x, 1 - x], -1), both, towards)
    np.testing.assert_allclose(np.stack([a.grad.numpy(), b.grad.numpy()], -1), expected.numpy(), rtol=1e-6)
