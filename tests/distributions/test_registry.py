"""Constraints as classes, the transforms that lead onto them, and distributions of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn

NAMES = [
    "positive", "nonnegative", "unit_interval", "simplex", "real", "real_vector", "lower_cholesky",
    "positive_definite",
]  # fmt: skip


def matrix(m: Any) -> Any:
    return m.tensor(np.linspace(-1.0, 1.0, 9).reshape(3, 3))


@pytest.mark.parametrize("name", NAMES)
def test_transform_to_is_pytorchs(name):
    found = []
    for m in (tn, torch):
        constraint = getattr(m.distributions.constraints, name)
        found.append(m.distributions.transform_to(constraint)(matrix(m)).numpy())
        assert repr(constraint) == repr(getattr(torch.distributions.constraints, name))
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "bounded",
    [
        lambda c: c.greater_than(2.0),
        lambda c: c.less_than(-1.0),
        lambda c: c.interval(-1.0, 3.0),
        lambda c: c.half_open_interval(0.0, 3.0),
        lambda c: c.simplex,
        lambda c: c.stack([c.positive, c.unit_interval, c.real], -1),
        lambda c: c.cat([c.positive, c.real], -1, [1, 2]),
    ],
)
def test_biject_to_is_pytorchs_and_can_be_undone(bounded):
    found = []
    for m in (tn, torch):
        transform = m.distributions.biject_to(bounded(m.distributions.constraints))
        y = transform(matrix(m))
        np.testing.assert_allclose(transform.inv(y).numpy(), matrix(m).numpy(), atol=1e-6)
        found.append(y.numpy())
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


def test_a_constraint_of_ones_own_has_a_check_and_a_transform():
    class Above(tn.distributions.constraints.Constraint):
        def __init__(self, bound):
            self.bound = bound

        def check(self, value):
            return value > self.bound

    tn.distributions.transform_to.register(
        Above, lambda each: tn.distributions.AffineTransform(each.bound, 1.0)
    )
    assert Above(1).check(tn.tensor([0.0, 2.0])).tolist() == [False, True]
    assert tn.distributions.transform_to(Above(3.0))(tn.zeros(1)).tolist() == [3.0]
    with pytest.raises(tn.UnsupportedError, match="no transform is registered for"):
        tn.distributions.biject_to(Above(3.0))


@pytest.mark.parametrize("name", ["mean", "variance", "mode", "entropy", "log_prob"])
def test_wishart_is_pytorchs(name):
    found = []
    for m in (tn, torch):
        scale = m.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=m.float64)
        made = m.distributions.Wishart(m.tensor(4.5, dtype=m.float64), covariance_matrix=scale)
        given = {"entropy": (), "log_prob": (m.tensor([[3.0, 0.2], [0.2, 2.0]], dtype=m.float64),)}
        value = getattr(made, name)
        found.append(np.asarray(value(*given[name]) if name in given else value))
    np.testing.assert_allclose(*found, rtol=1e-8)


def test_wisharts_draws_have_its_mean():
    tn.manual_seed(0)
    made = tn.distributions.Wishart(5.0, covariance_matrix=tn.tensor([[2.0, 0.3], [0.3, 1.0]]))
    np.testing.assert_allclose(made.sample((4000,)).mean(0).numpy(), made.mean.numpy(), atol=0.25)


def test_lkj_draws_factors_of_correlations_with_the_right_spread():
    made = tn.distributions.LKJCholesky(3, tn.tensor(1.5, dtype=tn.float64))
    theirs = torch.distributions.LKJCholesky(3, torch.tensor(1.5, dtype=torch.float64))
    tn.manual_seed(0)
    drawn = made.sample((4000,))
    assert made.support.check(drawn).all()
    np.testing.assert_allclose(made.log_prob(drawn)[:9], theirs.log_prob(torch.tensor(drawn.numpy()))[:9])
    # Each correlation is 2 Beta(a, a) - 1 with a = concentration - 1 + dim / 2. PyTorch's draws are wider.
    spread = (drawn @ drawn.mT).numpy().std(0)[np.triu_indices(3, 1)]
    np.testing.assert_allclose(spread, np.sqrt(1 / 5), atol=0.02)
