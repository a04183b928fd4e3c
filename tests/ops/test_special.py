"""Special functions and deviations at places where digits are easily lost."""

from __future__ import annotations

import math

import numpy as np
import torch

import tenfold as tn


def test_lgamma_keeps_its_digits_near_its_zeros():
    steps = 2.0 ** -np.arange(1, 23)
    places = np.array([1.0, 2.0, *(1 + steps), *(1 - steps), *(2 + steps), *(2 - steps)], np.float32)
    x = tn.tensor(places, requires_grad=True)
    y = tn.lgamma(x)
    y.sum().backward()
    np.testing.assert_allclose(y.tolist(), [math.lgamma(each) for each in places], rtol=1e-6)
    np.testing.assert_allclose(x.grad.tolist(), torch.digamma(torch.tensor(places)).tolist(), rtol=2e-5)


def test_the_upper_incomplete_gamma_function_keeps_its_digits_where_it_is_nearly_zero():
    a = np.array([1e-25, 1e-12, 1e-6, 1e-3], np.float64)
    x = np.array([1e-25, 1e-9, 1e-7, 1e-8], np.float64)
    # Q(a, x) is a (-log(x) - γ) and terms of a² and x
    expected = -np.expm1(a * np.log(x) + np.euler_gamma * a - np.pi**2 / 12 * a**2)
    np.testing.assert_allclose(tn.special.gammaincc(tn.tensor(a), tn.tensor(x)).tolist(), expected, rtol=1e-6)


def test_deviations_have_the_range_of_what_they_measure():
    places = np.array([[1, 2, 4], [3, 3, 3], [-1, 5, 0.5]], np.float32)
    for size in (1.0, 3e19, 2e37, 1e-22, 1e-30):
        x, y = (library.tensor(places * np.float32(size), requires_grad=True) for library in (tn, torch))
        found, expected = (each.std(1) + each.std() for each in (x, y))
        for each in (found, expected):
            each.sum().backward()
        np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-6)
        np.testing.assert_allclose(x.grad.tolist(), y.grad.tolist(), rtol=1e-5, atol=1e-6)


def test_incomplete_gamma_functions_of_large_numbers_are_nearly_normal():
    a = np.array([2e6, 1e7, 1e9, 1e12], np.float64)[:, None]
    off = np.array([-3.0, -0.7, -1e-3, 0.0, 1e-3, 0.7, 3.0])  # deviations from the mean
    x = a + off * np.sqrt(a)
    x = np.concatenate([x, a * [0.98, 0.995, 1.005, 1.02]], 1)
    a = np.broadcast_to(a, x.shape).copy()
    for name in ("gammainc", "gammaincc"):
        found = getattr(tn.special, name)(tn.tensor(a), tn.tensor(x)).numpy()
        expected = getattr(torch.special, name)(torch.tensor(a), torch.tensor(x)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9, err_msg=name)
