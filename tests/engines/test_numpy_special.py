"""Special functions on tier 0 against PyTorch's in float32 and float64: every range that has a formula of its
own, and the ends of the dtypes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tenfold.engines.numpy import special

NEAR = np.concatenate([np.linspace(-12, 12, 4801), np.linspace(-1, 1, 401) * 1e-3, [0.0, -0.0]])
FAR = np.array([20.0, 27.0, 35.0, 90.0, 300.0, 700.0, 1e4, 1e8, 1e30])
EDGES = np.array([math.inf, -math.inf, math.nan])
EVERYWHERE = np.concatenate([NEAR, FAR, -FAR, EDGES])
INSIDE = np.concatenate([np.linspace(-0.9999, 0.9999, 2001), 1 - 2.0 ** -np.arange(3, 24)])

# By function: what PyTorch calls it, where it is compared, and how far it may be off: in float64, in float32.
FUNCTIONS = {
    "erf": (torch.erf, EVERYWHERE, 1e-15, 3e-7),
    "erfc": (torch.erfc, EVERYWHERE, 5e-14, 3e-6),
    "erf_inv": (torch.erfinv, np.concatenate([INSIDE, -INSIDE, [1.0, -1.0, 1.5]]), 1e-11, 1e-5),
    "bessel_i1e": (torch.special.i1e, EVERYWHERE[:-3], 2e-15, 2e-6),
    "lgamma": (torch.lgamma, np.concatenate([np.linspace(0.01, 30, 2999), FAR[:-1]]), 1e-13, 1e-5),
    "digamma": (torch.digamma, np.concatenate([np.linspace(0.01, 30, 2999), FAR]), 1e-13, 1e-5),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_number(name, dtype):
    golden, places, *tolerances = FUNCTIONS[name]
    x = places.astype(dtype)
    with np.errstate(all="ignore"):
        found = getattr(special, name)(x)
    assert found.dtype == dtype
    # What is left of the digits follows from how exactly the number itself is known.
    expected = golden(torch.tensor(x, dtype=torch.float64)).numpy()
    tiny = np.finfo(dtype).tiny
    rtol = tolerances[dtype == np.float32]
    np.testing.assert_allclose(found, expected.astype(dtype), rtol=rtol, atol=max(tiny, rtol * 1e-1))


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-13), (np.float32, 2e-5)])
def test_functions_of_two_numbers(dtype, rtol):
    places = np.meshgrid(np.linspace(1.1, 12, 60), np.linspace(0.2, 40, 80))
    s, q = (each.astype(dtype) for each in places)
    zeta = torch.special.zeta(*[torch.tensor(each, dtype=torch.float64) for each in (s, q)])
    np.testing.assert_allclose(special.zeta(s, q), zeta.numpy(), rtol=rtol)
    x = np.linspace(0.2, 40, 200).astype(dtype)
    for n in range(1, 6):
        zeta = torch.special.zeta(n + 1.0, torch.tensor(x, dtype=torch.float64)).numpy()
        expected = (-1) ** (n + 1) * math.factorial(n) * zeta
        with np.errstate(all="ignore"):
            found = special.polygamma(np.full_like(x, n), x)
        np.testing.assert_allclose(found, expected, rtol=10 * rtol)


def test_gamma_functions_are_reflected_below_one_half():
    x = np.linspace(-9.9, 0.45, 1000)
    x = x[np.abs(x - np.round(x)) > 1e-2]
    for name, golden in (("lgamma", torch.lgamma), ("digamma", torch.digamma)):
        found = getattr(special, name)(x)
        np.testing.assert_allclose(found, golden(torch.tensor(x)).numpy(), rtol=1e-11, atol=1e-12)
