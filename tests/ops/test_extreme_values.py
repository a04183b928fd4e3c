"""Values, gradients and refusals at infinities, NaN, signed zeros and numbers that overflow a dtype."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tenfold as tn

INF, NAN = math.inf, math.nan
VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 7.0, INF, -INF, NAN]


@pytest.fixture(params=["numpy", "xla"])
def tier(request, choose_tier):
    choose_tier(request.param)


def text(tensor):
    """Every element, with the sign of zeros."""
    return np.array2string(tensor.detach().double().numpy(), threshold=10**6)


WITH_SIGNS_OF_ZERO = {
    "relu": lambda L, x: x.relu(),
    "relu6": lambda L, x: L.nn.functional.relu6(x),
    "hardtanh": lambda L, x: L.nn.functional.hardtanh(x, 0, 1),
    "hardtanh by NaN": lambda L, x: L.nn.functional.hardtanh(x, -NAN, NAN),
    "sign": lambda L, x: x.sign(),
    "sgn": lambda L, x: x.sgn(),
    "clamp below": lambda L, x: x.clamp(min=0),
    "clamp above": lambda L, x: x.clamp(max=0),
    "clamp on both sides": lambda L, x: x.clamp(-0.5, 0),
    "clamp by NaN": lambda L, x: x.clamp(min=NAN),
    "clamp in the wrong order": lambda L, x: x.clamp(1, -1),
    "elu": lambda L, x: L.nn.functional.elu(x, 1.5),
    "elu by infinity": lambda L, x: L.nn.functional.elu(x, INF),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_signs_of_zero_and_infinities_are_those_of_pytorch(dtype, tier):
    def run(L):
        x = L.tensor(VALUES, dtype=getattr(L, dtype))
        return L.stack([compute(L, x) for compute in WITH_SIGNS_OF_ZERO.values()]).double().numpy()

    for name, ours, theirs in zip(WITH_SIGNS_OF_ZERO, run(tn), run(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=name)
        zero = theirs == 0
        np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(theirs[zero]), err_msg=name)


SLOPES = {
    "relu": lambda L, x: x.relu(),
    "hardtanh": lambda L, x: L.nn.functional.hardtanh(x, 0, 1),
    "clamp": lambda L, x: x.clamp(-0.5, 1),
    "clamp above": lambda L, x: x.clamp(max=0),
    "elu": lambda L, x: L.nn.functional.elu(x, 1.5),
    "selu": lambda L, x: L.nn.functional.selu(x),
    "celu": lambda L, x: L.nn.functional.celu(x, 2.0),
    "logit with eps": lambda L, x: L.logit(x, 0.1),
    "copysign": lambda L, x: L.copysign(x, -1.0),
    "logcumsumexp": lambda L, x: L.logcumsumexp(x.reshape(1, 1, -1).expand(2, 1, 9), 2),
    "logcumsumexp of nothing yet": lambda L, x: L.logcumsumexp(L.cat([x[8:9], x[8:9], x[:7]]), 0),
    "logcumsumexp of infinity": lambda L, x: L.logcumsumexp(L.cat([x[2:4], x[7:8], x[:4]]), 0),
    "renorm": lambda L, x: L.renorm(L.stack([x[2:4], x[7:]]), 2, 0, 0.5),
}
AT_NAN = {
    "relu": lambda L, x: x.relu(),
    "clamp": lambda L, x: x.clamp(-0.5, 1),
    "logit": lambda L, x: L.logit(x),
    "logit with eps": lambda L, x: L.logit(x, 0.1),
    "copysign": lambda L, x: L.copysign(x, -1.0),
    "renorm": lambda L, x: L.renorm(L.stack([x, x]), 2, 0, 0.5),
}


@pytest.mark.parametrize("functions, values", [(SLOPES, VALUES[:-1]), (AT_NAN, [NAN, 1.0])])
def test_gradients_at_extreme_values_are_those_of_pytorch(functions, values):
    """PyTorch's kernels of few elements: those of many have other gradients at NaN."""

    def run(L):
        gradients = []
        for compute in functions.values():
            x = L.tensor(values, requires_grad=True)
            gradients += L.autograd.grad(compute(L, x).sum(), x)
        return L.stack(gradients).numpy()

    for name, ours, theirs in zip(functions, run(tn), run(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)


OVERFLOWING = {
    "sum": lambda L, x, n: L.add(x, x, alpha=n),
    "difference": lambda L, x, n: L.sub(x, x, alpha=n),
    "power": lambda L, x, n: x**n,
    "hardshrink": lambda L, x, n: L.nn.functional.hardshrink(x, n),
    "softshrink": lambda L, x, n: L.nn.functional.softshrink(x, n),
    "linspace": lambda L, x, n: L.linspace(0, n, 3, dtype=x.dtype),
    "logit": lambda L, x, n: L.logit(x, n),
}
OVERFLOWING_FLOAT = {
    "lerp": lambda L, x, n: L.lerp(x, x + 1, n),
    "elu": lambda L, x, n: L.nn.functional.elu(x, n),
    "celu": lambda L, x, n: L.nn.functional.celu(x, n),
    "leaky_relu": lambda L, x, n: L.nn.functional.leaky_relu(x, n),
    "softplus": lambda L, x, n: L.nn.functional.softplus(x, n),
    "addmm": lambda L, x, n: L.addmm(x[:, None], x[:, None], x[None, :1], beta=n),
    "baddbmm": lambda L, x, n: L.baddbmm(x[None, :, None], x[None, :, None], x[None, None, :1], alpha=n),
}


@pytest.mark.parametrize("dtype, number", [("float16", 1e5), ("float16", 70_000), ("bfloat16", -1e39)])
@pytest.mark.parametrize("name", OVERFLOWING)
def test_a_number_that_overflows_a_half_type_is_refused(name, dtype, number):
    for L in (torch, tn):
        with pytest.raises(RuntimeError if L is torch else tn.errors.TenfoldError):
            OVERFLOWING[name](L, L.tensor([1.0, 2.0], dtype=getattr(L, dtype)), number)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", OVERFLOWING_FLOAT)
def test_a_number_that_overflows_the_type_computed_in_is_refused(name, dtype):
    for L in (torch, tn):
        with pytest.raises(RuntimeError if L is torch else tn.errors.TenfoldError):
            OVERFLOWING_FLOAT[name](L, L.tensor([1.0, 2.0], dtype=getattr(L, dtype)), 1e39)


def test_bounds_that_are_nan_are_refused():
    x = tn.ones(2, 3)
    for call in (
        lambda: tn.renorm(x, 2, 0, NAN),
        lambda: tn.isclose(x, x, atol=NAN),
        lambda: tn.nn.functional.smooth_l1_loss(x, x, beta=NAN),
        lambda: tn.nn.functional.huber_loss(x, x, delta=NAN),
        lambda: tn.nn.functional.softshrink(x, NAN),
    ):
        with pytest.raises(tn.errors.TenfoldError):
            call()


def test_an_element_that_overflows_becomes_infinite():
    """By a mask and by indices as by a place."""
    for index in (0, [0], tn.tensor([True, False, False]), slice(0, 1)):
        x = tn.zeros(3, dtype=tn.float16)
        if isinstance(index, slice):
            x[index] = tn.tensor([1e5])
        else:
            x[index] = 1e5
        assert x.tolist() == [INF, 0.0, 0.0]


def test_a_range_downwards_starts_at_zero_without_a_sign(tier):
    for numbers in ((0.0, -3.0, -1.0), (0, -3, -1.5), (1.0, -2.0, -1.0)):
        assert text(tn.arange(*numbers)) == text(torch.arange(*numbers))


def test_lerp_ends_exactly_where_it_is_to():
    x, end = tn.tensor([1e8, 1.0]), tn.tensor([1.0, 1e8])
    assert tn.lerp(x, end, 1).tolist() == end.tolist()
    assert tn.lerp(x, end, 0).tolist() == x.tolist()


def test_lerp_promotes_a_weight_without_dimensions():
    def run(L, weight, dtype, shape=(2,)):
        x, end = (L.full(shape, number, dtype=getattr(L, dtype)) for number in (1.0, 3.0))
        return L.lerp(x, end, L.tensor(1, dtype=getattr(L, weight)) * 0.25)

    for weight in ("float64", "float32", "float16", "int64"):
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            for shape in ((2,), ()):
                ours, theirs = (run(L, weight, dtype, shape) for L in (tn, torch))
                assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
                assert text(ours) == text(theirs)
    with pytest.raises(tn.errors.TenfoldError):
        tn.lerp(tn.ones(2), tn.ones(2), tn.ones(2, dtype=tn.float64))


def test_lerp_of_a_promoted_weight_has_gradients():
    def run(L):
        x, end = L.tensor([1.0, 2.0], requires_grad=True), L.tensor([3.0, 5.0], requires_grad=True)
        weight = L.tensor(0.3, dtype=L.float64, requires_grad=True)
        return L.autograd.grad(L.lerp(x, end, weight).sum(), (x, end, weight))

    for ours, theirs in zip(run(tn), run(torch), strict=True):
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize("indices", [[0, INF], [NAN, 1.0], [1.0, 2.0], [1e30]])
def test_one_hot_takes_integers_alone(indices):
    with pytest.raises(tn.errors.DTypeError, match="indices must be int64, not float32"):
        tn.nn.functional.one_hot(tn.tensor(indices))


@pytest.mark.parametrize("classes", [INF, NAN, 2.0, True, None, np.float32(3)])
def test_one_hot_counts_classes_by_an_integer(classes):
    with pytest.raises(tn.errors.ArgumentError, match="'num_classes' takes an int"):
        tn.nn.functional.one_hot(tn.tensor([0, 1]), classes)
    assert tn.nn.functional.one_hot(tn.tensor([0, 1]), np.int64(3)).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_distances_of_nan_are_nan_where_differences_are_counted():
    x = [[1.0, float("nan")], [2.0, 3.0], [float("inf"), 3.0], [float("inf"), 4.0]]
    found = [
        [library.pdist(library.tensor(x), 0.0), library.cdist(library.tensor(x), library.tensor(x[1:]), 0.0)]
        for library in (tn, torch)
    ]
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, INF])
def test_distances_of_nan_and_their_gradients_are_those_of_pytorch(p):
    points = [[0.0, NAN, 1.0], [0.0, 1.0, 3.0], [2.0, 1.0, 3.0], [2.0, 1.0, 3.0]]

    def found(t, distances):
        x = t.tensor(points, requires_grad=True)
        result = distances(t, x)
        result.nansum().backward()
        return result.detach().numpy(), x.grad.numpy()

    for distances in (lambda t, x: t.pdist(x, p), lambda t, x: t.cdist(x, t.tensor(points[:3]), p)):
        for ours, theirs in zip(found(tn, distances), found(torch, distances), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_complex_powers_of_two_are_those_of_pytorch(tier):
    parts = [0.0, -0.0, 1.0, -2.5, INF, -INF, NAN]
    exponents = np.array([complex(a, b) for a in parts[:-1] for b in parts[:4]])
    np.testing.assert_allclose(
        tn.exp2(tn.tensor(exponents)).numpy(), torch.exp2(torch.tensor(exponents)).numpy()
    )


# Sums of complex exponentials whose logarithms are infinite, zero's or unknown.
_COMPLEX_LOGARITHMS = [
    [complex(math.nan, 0), 1, 2],
    [complex(-math.inf, math.inf), 1, 2],
    [complex(-math.inf, 3), complex(-math.inf, -3)],
    [complex(-math.inf, math.nan), 2],
    [2, complex(math.inf, math.nan), 3],
    [complex(math.inf, 1), complex(math.inf, 2)],
    [complex(math.inf, math.inf), complex(-math.inf, math.inf), 2],
    [1e3, complex(math.inf, 0), complex(-math.inf, 0), 1, math.nan, 1],
]


@pytest.mark.parametrize("values", _COMPLEX_LOGARITHMS)
def test_cumulative_sums_of_extreme_complex_exponentials_are_those_of_pytorch(values, tier):
    ours = tn.logcumsumexp(tn.tensor(values, dtype=tn.complex128), 0)
    theirs = torch.logcumsumexp(torch.tensor(values, dtype=torch.complex128), 0)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy())
