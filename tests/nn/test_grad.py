"""`nn.grad` gives the gradients that PyTorch's gives."""

import numpy as np
import pytest
import torch

import tenfold as tn

CASES = [(1, {}), (2, {"stride": 2, "padding": 1}), (2, {"groups": 2}), (3, {"dilation": 2, "padding": 2})]


@pytest.mark.parametrize(("dims", "options"), CASES)
def test_gradients_of_convolutions(dims, options):
    random = np.random.default_rng(0)
    x = random.random((2, 4, *[6] * dims), "float32")
    weight = random.random((4, 4 // options.get("groups", 1), *[3] * dims), "float32")
    output = getattr(torch.nn.functional, f"conv{dims}d")(torch.tensor(x), torch.tensor(weight), **options)
    cotangent = random.random(output.shape, "float32")
    for name, arguments in (
        (f"conv{dims}d_input", (x.shape, weight)),
        (f"conv{dims}d_weight", (x, weight.shape)),
    ):
        results = []
        for package in (tn, torch):
            given = [each if isinstance(each, tuple) else package.tensor(each) for each in arguments]
            results.append(
                getattr(package.nn.grad, name)(*given, package.tensor(cotangent), **options).numpy()
            )
        np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)
