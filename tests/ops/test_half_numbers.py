"""Products and quotients of half-precision tensors and Python numbers, which are not rounded beforehand."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn

OPERATIONS = {
    "product": lambda x, number: x * number,
    "product from the left": lambda x, number: number * x,
    "quotient": lambda x, number: x / number,
}


@pytest.mark.parametrize("number", [1.003, 100_000, -3e-6, float("inf")])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_number_keeps_its_precision(name, dtype, number):
    def run(lib):
        x = lib.tensor([100.0, 3.0, 0.25, 0.0], dtype=getattr(lib, dtype), requires_grad=True)
        y = OPERATIONS[name](x, number)
        (gradient,) = lib.autograd.grad(y.sum(), x)
        return [y.detach().float().numpy(), gradient.float().numpy()]

    for ours, theirs in zip(run(tn), run(torch), strict=True):
        assert str(ours) == str(theirs)
