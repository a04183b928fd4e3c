"""Divergences of distributions of two families: every pair that PyTorch has a rule for, with its value."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions.kl import _KL_REGISTRY

import tenfold as tn

A, B = np.array([0.7, 1.3, 2.5], np.float32), np.array([0.4, 0.6, 1.9], np.float32)
P = np.array([0.2, 0.5, 0.9], np.float32)
GIVEN = {
    "Bernoulli": (P,), "Beta": (A, B), "Binomial": (5, P), "ContinuousBernoulli": (P,),
    "Exponential": (A,), "Gamma": (A + 1, B),
    "Gumbel": (A, B), "Laplace": (A - 1, B), "Normal": (A - 1, B), "Pareto": (B, A + 2), "Poisson": (A,),
    "Uniform": (P, P + B),
}  # fmt: skip
PAIRS = sorted(
    {(p.__name__, q.__name__) for p, q in _KL_REGISTRY if {p.__name__, q.__name__} <= GIVEN.keys()}
)


def made(t, name, shift=0.0):
    given = [each if isinstance(each, int) else t.tensor(each + np.float32(shift)) for each in GIVEN[name]]
    return getattr(t.distributions, name)(*given)


def divergence(t, p, q):
    shift = 0.05 if q in ("Uniform", "Bernoulli", "Binomial", "ContinuousBernoulli") else 0.3
    return t.distributions.kl_divergence(made(t, p), made(t, q, shift))


@pytest.fixture(scope="module")
def ours():
    """All of them, interpreted: to compile each would take longer than the rest of these tests."""
    engine = tn.get_engine()
    tn.set_engine("numpy")
    found = {pair: divergence(tn, *pair) for pair in PAIRS}
    tn.eval(found)
    yield found
    tn.set_engine(engine)


@pytest.mark.parametrize("pair", PAIRS, ids=" to ".join)
def test_the_divergence_is_pytorchs(pair, ours):
    expected = np.broadcast_to(divergence(torch, *pair).numpy(), (3,))
    np.testing.assert_allclose(np.broadcast_to(ours[pair].numpy(), (3,)), expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("which", [(0, 0), (0, 1), (1, 0)])
def test_normals_of_low_rank_meet_others(which):
    def pair(t):
        loc, factor = t.tensor(A), t.tensor(np.outer(A, B))
        low = t.distributions.LowRankMultivariateNormal(loc, factor, t.tensor(B))
        whole = t.distributions.MultivariateNormal(loc + 1, t.eye(3) * 2)
        other = t.distributions.LowRankMultivariateNormal(loc - 1, factor / 2, t.tensor(A))
        kinds = (low, whole)
        return kinds[which[0]], other if which == (0, 0) else kinds[which[1]]

    ours, theirs = tn.distributions.kl_divergence(*pair(tn)), torch.distributions.kl_divergence(*pair(torch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4)


def geometric_family(t):
    """A family of a program's own, which gives its log normalizer alone: log(1 - p) counts from 0."""

    class Family(t.distributions.ExponentialFamily):
        def __init__(self, logit):
            self.logit = logit
            super().__init__(logit.shape, validate_args=False)

        @property
        def _natural_params(self):
            return (t.log(t.sigmoid(self.logit)),)

        def _log_normalizer(self, x):
            return -t.log1p(-t.exp(x))

        _mean_carrier_measure = 0

    return Family(t.tensor(A)), Family(t.tensor(B))


def test_an_exponential_family_derives_its_entropy_and_divergence():
    ours, theirs = geometric_family(tn), geometric_family(torch)
    for compare in (lambda t, p, q: p.entropy(), lambda t, p, q: t.distributions.kl_divergence(p, q)):
        found, expected = compare(tn, *ours), compare(torch, *theirs)
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="no rule"):
        tn.distributions.kl_divergence(ours[0], tn.distributions.Normal(0.0, 1.0))
