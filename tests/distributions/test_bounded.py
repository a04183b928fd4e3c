"""The continuous Bernoulli and the generalized Pareto distribution, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn

P = np.array([0.2, 0.5, 0.5005, 0.9], np.float32)
CASES = {
    "ContinuousBernoulli": ({"probs": P}, np.array([0.1, 0.5, 0.7, 0.999], np.float32)),
    "GeneralizedPareto": (
        {"loc": P, "scale": P + 1, "concentration": np.array([-0.3, 0.0, 0.2, 0.7], np.float32)},
        np.array([0.5, 1.0, 2.0, 5.0], np.float32),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_densities_moments_and_quantiles_are_pytorchs(name):
    given, value = CASES[name]
    found = []
    for t in (tn, torch):
        made = getattr(t.distributions, name)(**{key: t.tensor(each) for key, each in given.items()})
        x, u = t.tensor(value), t.tensor(P)
        results = [made.mean, made.variance, made.entropy(), made.log_prob(x), made.cdf(x), made.icdf(u)]
        found.append(t.stack(results).numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_mean_and_gradients(name):
    given, _ = CASES[name]
    tn.manual_seed(0)
    tensors = {key: tn.tensor(each[:2], requires_grad=True) for key, each in given.items()}
    made = getattr(tn.distributions, name)(**tensors)
    drawn = made.rsample((20_000,))
    np.testing.assert_allclose(drawn.mean(0).detach().numpy(), made.mean.detach().numpy(), atol=0.05)
    drawn.mean().backward()
    assert all(np.isfinite(each.grad.numpy()).all() for each in tensors.values())
    assert made.expand([3, 2]).sample().shape == (3, 2)
