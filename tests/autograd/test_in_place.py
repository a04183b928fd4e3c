"""Gradients through writes in place: the op that writes had the old value, others after it have not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn

WRITES = {
    **{
        name: lambda y, name=name: getattr(y, name)()
        for name in (
            *(
                "abs_",
                "acos_",
                "asin_",
                "atan_",
                "cos_",
                "cosh_",
                "digamma_",
                "erf_",
                "erfc_",
                "exp2_",
                "exp_",
            ),
            *("lgamma_", "log_", "log1p_", "log2_", "log10_", "logit_", "neg_", "reciprocal_", "round_"),
            *("sigmoid_", "sign_", "sin_", "sinh_", "sqrt_", "square_", "tanh_", "zero_"),
        )
    },
    **{
        name: lambda y, name=name: getattr(y, name)(0.5)
        for name in (
            "clamp_",
            "clamp_max_",
            "pow_",
            "eq_",
            "ge_",
            "lt_",
            "fill_",
            "mul_",
            "copysign_",
            "xlogy_",
        )
    },
    "copy_": lambda y: y.copy_(y.detach() + 1),
    "a view": lambda y: y[1:].clamp_(0.2, 0.4),
    "a row of a view": lambda y: y.view(2, 2)[1].sin_(),
    "two in a row": lambda y: y.sin_().cos_(),
}


def gradient(module, write):
    x = module.tensor([0.1, 0.3, 0.5, 0.7], requires_grad=True)
    y = x * 1.25
    write(y)
    assert y.requires_grad
    (y * y).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("name", WRITES)
def test_the_gradient_of_a_write_is_pytorch_s(name):
    np.testing.assert_allclose(
        gradient(tn, WRITES[name]), gradient(torch, WRITES[name]), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.mul_(y),
        lambda y: (y.sin(), y.add_(1))[0],
        lambda y: y.exp().sin_(),
    ],
    ids=["by itself", "after it was used", "over a saved result"],
)
def test_a_value_that_the_gradient_needs_is_not_written(write):
    for module in (torch, tn):
        y = module.tensor([0.1, 0.3], requires_grad=True) * 2
        with pytest.raises(RuntimeError, match="inplace|in place"):
            write(y).sum().backward()


@pytest.mark.parametrize("view", [lambda x: x[0], lambda x: x.view(4), lambda x: x[1].view(2)[:1]])
def test_a_view_of_a_leaf_is_not_written_whatever_memory_the_leaf_is_a_part_of(view):
    for module in (torch, tn):
        for x in (module.ones(2, 2), module.ones(4).reshape(2, 2), module.ones(3, 2)[1:]):
            x.requires_grad_()
            with pytest.raises(RuntimeError, match="a view of"):
                view(x).add_(1)
            with module.no_grad():
                view(x).add_(1)
            written = view(x.detach())
            written.mul_(module.tensor(2.0, requires_grad=True))
            written.add_(1)
            assert written.requires_grad


def through_detached(m, make):
    """What requires gradients, and what comes to them, of a tensor and another that shares its memory."""
    x = m.tensor([1.0, 2.0], requires_grad=True)
    base = make(x)
    other = base.detach()
    other.add_(1)
    found = [other.requires_grad, base.requires_grad, other.tolist(), base.tolist()]
    other.requires_grad_()
    for _ in range(2):
        (other * other).sum().backward()
        with m.no_grad():
            other.mul_(2)
    (base * base).sum().backward()
    return [*found, other.grad.tolist(), x.grad.tolist()]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 3], ids=["a leaf", "a result"])
def test_a_write_to_a_detached_tensor_ties_it_to_no_gradients(make):
    assert through_detached(tn, make) == through_detached(torch, make)
