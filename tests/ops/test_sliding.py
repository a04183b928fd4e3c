"""Depthwise convolutions with large kernels: as PyTorch's, and quick to compile."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn


def results(lib, x, weight, stride, dilation):
    """A convolution of as many groups as channels, its gradients, and the gradients of those."""
    x, weight = lib.tensor(x, requires_grad=True), lib.tensor(weight, requires_grad=True)
    y = lib.nn.functional.conv2d(x, weight, stride=stride, padding=3, dilation=dilation, groups=x.shape[1])
    first = lib.autograd.grad(y.square().sum(), [x, weight], create_graph=True)
    second = lib.autograd.grad(first[0].square().sum() + first[1].square().sum(), [x, weight])
    return [each.detach().numpy() for each in (y, *first, *second)]


@pytest.mark.parametrize(
    ("tier", "stride", "dilation", "each"),
    [("xla", 1, 1, 1), ("numpy", 1, 1, 1), ("numpy", 2, 1, 2), ("numpy", 1, 2, 1)],
)
def test_a_depthwise_convolution_and_its_gradients_are_pytorchs(tier, stride, dilation, each, choose_tier):
    choose_tier(tier)
    draws = np.random.default_rng(0)
    x, weight = draws.normal(size=(2, 18, 13, 12)), draws.normal(size=(18 * each, 1, 3, 7))
    ours, theirs = [results(lib, x, weight, stride, dilation) for lib in (tn, torch)]
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our, their, rtol=0, atol=1e-14 * np.abs(their).max())


def test_the_gradient_in_a_large_kernel_is_one_loop_not_a_product_for_each_tap():
    x, weight = tn.ones(1, 32, 9, 9).eval(), tn.ones(32, 1, 7, 7, requires_grad=True).eval()
    tn.nn.functional.conv2d(x, weight, padding=3, groups=32).sum().backward()
    text = weight.grad.show(stage="flat")
    assert "WhileOp" in text and text.count("DotGeneralOp") == 0
