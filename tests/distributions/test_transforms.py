"""Transforms beside PyTorch's: where they lead, back again, how they stretch, and of what shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn

VECTOR = [[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]]
# Each by how it is made, and by values that it takes.
CASES: dict[str, Any] = {
    "ExpTransform()": VECTOR,
    "PowerTransform(t([2.5, 1.5, -1.0]))": [[0.3, 1.2, 0.7]],
    "SigmoidTransform()": VECTOR,
    "SoftplusTransform()": VECTOR,
    "TanhTransform()": VECTOR,
    "AffineTransform(t([1.0, 2.0, 0.0]), t([-2.0, 0.5, 1.0]))": VECTOR,
    "AffineTransform(1.0, -2.0, event_dim=1)": VECTOR,
    "CumulativeDistributionTransform(Normal(t([0.5]), t([1.5])))": VECTOR,
    "StickBreakingTransform()": VECTOR,
    "CorrCholeskyTransform()": VECTOR,
    "ReshapeTransform((3,), (3, 1))": VECTOR,
    "IndependentTransform(ExpTransform(), 1)": VECTOR,
    "ComposeTransform([AffineTransform(1.0, -2.0), ExpTransform()])": VECTOR,
    "ComposeTransform([ExpTransform(), StickBreakingTransform()])": VECTOR,
    "ExpTransform().inv": [[0.3, 1.2, 0.7]],
    "CatTransform([ExpTransform(), TanhTransform()], -1, [1, 2])": VECTOR,
    "CatTransform([AffineTransform(1.0, -2.0, 1), AffineTransform(0.0, 3.0, 1)], -1, [1, 2])": VECTOR,
    "StackTransform([ExpTransform(), TanhTransform()], 0)": VECTOR,
}
ONE_WAY = {
    "SoftmaxTransform()": VECTOR,
    "AbsTransform()": VECTOR,
    "LowerCholeskyTransform()": [[0.3, -1.2], [0.4, 0.5]],
    "PositiveDefiniteTransform()": [[0.3, -1.2], [0.4, 0.5]],
}


def findings(xp: Any, call: str, values: Any) -> dict[str, Any]:
    transform = eval(call, vars(xp.distributions) | {"t": lambda x: xp.tensor(x, dtype=xp.float64)})
    x = xp.tensor(values, dtype=xp.float64)
    y = transform(x)
    found = {f"{call}: there": y, f"{call}: back": transform.inv(y)}
    if call in CASES:
        found[f"{call}: stretch"] = transform.log_abs_det_jacobian(x, y)
        found[f"{call}: stretch back"] = transform.inv.log_abs_det_jacobian(y, x)
    return found


def test_transforms_are_pytorchs():
    ours, theirs = (
        {key: each for call, x in (CASES | ONE_WAY).items() for key, each in findings(xp, call, x).items()}
        for xp in (tn, torch)
    )
    tn.eval(ours)
    for key, expected in theirs.items():
        np.testing.assert_allclose(ours[key].numpy(), expected.numpy(), rtol=1e-6, atol=1e-8, err_msg=key)


@pytest.mark.parametrize("call", [call for call in CASES if "t(" not in call and "Cat" not in call])
def test_facts_of_transforms_are_pytorchs(call):
    ours, theirs = (eval(call, dict(vars(xp.distributions))) for xp in (tn, torch))
    assert ours.bijective == theirs.bijective
    assert ours.domain.event_dim == theirs.domain.event_dim
    assert ours.codomain.event_dim == theirs.codomain.event_dim
    assert tuple(ours.forward_shape((2, 3))) == tuple(theirs.forward_shape((2, 3)))
    assert ours.inv.inv is ours


def test_a_cached_transform_gives_back_what_it_was_given():
    transform = tn.distributions.ExpTransform(cache_size=1)
    x = tn.tensor([1.0, 2.0])
    assert transform.inv(transform(x)) is x


def test_gamma_draws_move_with_their_parameters():
    concentration = tn.tensor([0.5, 3.0], requires_grad=True)
    drawn = tn.distributions.Gamma(concentration, tn.ones(2)).rsample()
    (gradient,) = tn.autograd.grad(drawn.sum(), concentration)
    args = [torch.from_numpy(each.detach().numpy().copy()) for each in (concentration, drawn)]
    np.testing.assert_allclose(gradient.numpy(), torch._standard_gamma_grad(*args).numpy(), rtol=2e-3)
