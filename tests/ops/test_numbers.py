"""Numbers given to ops that fill, limit or scale by them, of the sizes that dtypes do not hold."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tenfold as tn
from tenfold.base.errors import TenfoldError


@pytest.mark.parametrize(
    "call",
    [
        lambda L, x, n: x.clamp(max=n),
        lambda L, x, n: x.clamp_min(n),
        lambda L, x, n: L.threshold(x, n, 0),
        lambda L, x, n: L.threshold(x, 0, n),
        lambda L, x, n: L.nn.functional.hardtanh(x, 0, n),
        lambda L, x, n: L.addcmul(x, x, x, value=n),
        lambda L, x, n: L.addcdiv(x, x, x, value=n),
        lambda L, x, n: L.where(x > 0, x, n),
        lambda L, x, n: L.full((1,), n, dtype=x.dtype),
        lambda L, x, n: L.full((2,), n, dtype=x.dtype),
        lambda L, x, n: L.linspace(0, n, 3, dtype=x.dtype),
        lambda L, x, n: L.linspace(0, n, 1, dtype=x.dtype),
        lambda L, x, n: x.clone().fill_(n),
    ],
)
def test_numbers_that_a_dtype_does_not_hold_are_refused_where_pytorch_refuses_them(call):
    numbers = {"int32": (2**40, 1e12), "uint8": (300, -1), "float16": (1e6, 1e50), "float32": (1e39, 2**40)}
    found: list[Any] = []
    expected: list[Any] = []
    for dtype, given in numbers.items():
        for number in given:
            for L, results in ((tn, found), (torch, expected)):
                try:
                    results.append(call(L, L.tensor([1, 2], dtype=getattr(L, dtype)), number))
                except (TenfoldError, RuntimeError, ValueError, NotImplementedError):
                    results.append(None)
    tn.eval(*[each for each in found if each is not None])
    assert [each if each is None else each.tolist() for each in found] == [
        each if each is None else each.tolist() for each in expected
    ]


def outcome(call):
    """What a call gives, or None where it is refused."""
    try:
        result = call()
    except (TenfoldError, RuntimeError, ValueError, OverflowError):
        return None
    return str(result.dtype).partition(".")[2], result.tolist()


def assigned(x, number):
    x = x.clone()
    x[0] = number
    return x


@pytest.mark.parametrize(
    "call",
    [
        lambda L, x, n: x + n,
        lambda L, x, n: n - x,
        lambda L, x, n: x * n,
        lambda L, x, n: x & n,
        lambda L, x, n: x == n,
        lambda L, x, n: x**n,
        lambda L, x, n: L.add(x, x, alpha=n),
        lambda L, x, n: L.full_like(x, n),
        lambda L, x, n: L.masked_fill(x, x > 1, n),
        lambda L, x, n: L.arange(n, n + 2),
        lambda L, x, n: x.roll(n),
        lambda L, x, n: assigned(x, n),
        lambda L, x, n: x.narrow(0, 0, n),
        lambda L, x, n: x[: n * 4],
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, 10**30, -(2**63) - 1])
def test_integers_of_more_bits_than_an_argument_has_are_refused_where_pytorch_refuses_them(
    call, dtype, number
):
    ours, theirs = (
        outcome(lambda L=L: call(L, L.tensor([1, 2, 3]).to(getattr(L, dtype)), number)) for L in (tn, torch)
    )
    assert ours == theirs


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("number", [-1, 127, 200, 300, 2**40])
def test_factors_and_exponents_fit_the_integers_that_they_are_for(dtype, number):
    def outcomes(L):
        x = L.tensor([1, 2, 3]).to(getattr(L, dtype))
        return [outcome(lambda: L.add(x, x, alpha=number)), outcome(lambda: x**number)]

    assert outcomes(tn) == outcomes(torch)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("number", [2 + 0j, 1 + 2j])
def test_complex_numbers_are_taken_where_pytorch_takes_them(dtype, number):
    def outcomes(L):
        x = L.tensor([1, 2, 3]).to(getattr(L, dtype))
        calls = (
            lambda: x + number,
            lambda: x == number,
            lambda: L.scalar_tensor(number),
            lambda: L.scalar_tensor(number, dtype=getattr(L, dtype)),
            lambda: L.full((2,), number, dtype=getattr(L, dtype)),
        )
        return [outcome(call) for call in calls]

    assert outcomes(tn) == outcomes(torch)


@pytest.mark.parametrize("power", [lambda x, n: x**n, lambda x, n: n**x])
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("number", [2 + 0j, 1 + 2j])
def test_exponents_and_bases_may_be_complex(power, dtype, number):
    ours, theirs = (
        outcome(lambda L=L: power(L.tensor([1, 2, 3]).to(getattr(L, dtype)), number)) for L in (tn, torch)
    )
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], rel=1e-5)
