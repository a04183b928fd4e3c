"""Half-precision tensors beside numbers: which of them PyTorch rounds to their dtype beforehand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn

OPERATIONS = {
    "product": lambda x, number: x * number,
    "product from the left": lambda x, number: number * x,
    "quotient": lambda x, number: x / number,
    "quotient from the left": lambda x, number: number / x,
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


BESIDE_TENSORS = {
    "product": lambda L, x, y, number: x * number,
    "quotient": lambda L, x, y, number: x / number,
    "rounded down": lambda L, x, y, number: x // number,
    "cut": lambda L, x, y, number: L.div(x, number, rounding_mode="trunc"),
    "remainder": lambda L, x, y, number: x % number,
    "fmod": lambda L, x, y, number: L.fmod(x, number),
    "sum": lambda L, x, y, number: x + number,
    "difference": lambda L, x, y, number: number - x,
    "power": lambda L, x, y, number: abs(number) ** (x / 64),
    "logarithm": lambda L, x, y, number: L.xlogy(x, abs(number)),
    "of a number": lambda L, x, y, number: number / x,
    "of a number rounded down": lambda L, x, y, number: number // x,
    "divided number": lambda L, x, y, number: L.div(number, x),
    "divided number cut": lambda L, x, y, number: L.div(number, x, rounding_mode="trunc"),
    "multiplied number": lambda L, x, y, number: L.mul(number, x),
    "number with a logarithm": lambda L, x, y, number: L.xlogy(number, abs(x)),
    "products with logarithms": lambda L, x, y, number: L.xlogy(x, abs(y)),
    "products with shifted logarithms": lambda L, x, y, number: L.special.xlog1py(x, abs(y)),
    "cube": lambda L, x, y, number: x**3,
    "quotients rounded down": lambda L, x, y, number: x // y,
    "quotients cut": lambda L, x, y, number: L.div(x, y, rounding_mode="trunc"),
}
ROUNDED_OTHERWISE = ("power",)  # in the last place: PyTorch rounds parts of it, too
SCALED = {
    "scaled sum": lambda L, x, y, number: L.add(x, y, alpha=number),
    "scaled difference": lambda L, x, y, number: L.sub(x, y, alpha=number),
    "scaled number": lambda L, x, y, number: L.add(x, 0.7003, alpha=number),
    "from a number": lambda L, x, y, number: L.rsub(x, 0.7003, alpha=number),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [*BESIDE_TENSORS, *SCALED])
def test_each_number_is_rounded_where_pytorch_rounds_it(name, dtype):
    """The second number of a call is a parameter of the program that ran with the first."""
    arrays = np.random.default_rng(0).normal(0, 100, (2, 4096)).astype(np.float32)

    def run(L, number):
        x, y = (L.tensor(array).to(getattr(L, dtype)) for array in arrays)
        numbers = [number] if name in SCALED else [number, L.tensor(number), L.tensor(257)]
        results = [{**BESIDE_TENSORS, **SCALED}[name](L, x, y, each).float() for each in numbers]
        return L.stack(results).numpy()

    for number in (1.003, -0.1):
        for ours, theirs in zip(run(tn, number), run(torch, number), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2**-7 if name in ROUNDED_OTHERWISE else 0)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_an_integer_divisor_that_wraps_around_to_zero_is_refused(name):
    divide = getattr(tn, name)
    for dtype, divisor in ((tn.int32, -(2**63)), (tn.int32, 2**40), (tn.int8, 256), (tn.int64, 0)):
        with pytest.raises(tn.errors.DivisionByZero, match="an integer cannot be divided by zero"):
            divide(tn.tensor([1, -7], dtype=dtype), divisor)
        assert divide(tn.zeros(0, 3, dtype=dtype), divisor).shape == (0, 3)
    assert divide(tn.tensor([100], dtype=tn.int8), 300).tolist() == [
        getattr(torch, name)(torch.tensor([100], dtype=torch.int8), 300).item()
    ]


@pytest.mark.parametrize("alpha", [0.3, 3, -1.7])
@pytest.mark.parametrize("name", ["add", "sub", "rsub"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_scaled_sum_is_rounded_once_as_pytorch_rounds_whole_vectors(dtype, name, alpha):
    """Of the elements left over it rounds the product, too: see docs/differences.md."""
    given = np.random.default_rng(0).standard_normal((2, 1024)).astype(np.float32)

    def run(lib):
        x, y = (lib.tensor(each).to(getattr(lib, dtype)) for each in given)
        return getattr(lib, name)(x, y, alpha=alpha).float().numpy()

    np.testing.assert_array_equal(run(tn), run(torch))
