"""Quotients on the CPU are IEEE 754's: XLA does not multiply by reciprocals in their place."""

from __future__ import annotations

import numpy as np

import tenfold as tn

NUMBERS = np.arange(1, 300, dtype=np.float32)


def test_a_number_divided_by_itself_is_one():
    x = tn.tensor([3.0, 41.0, 17.0])
    assert (x / x.max()).tolist()[1] == 1.0
    assert tn.ones(49).div(tn.tensor(49.0)).tolist()[0] == np.float32(1) / np.float32(49)


def test_a_constant_or_broadcast_divisor_divides():
    x = tn.tensor(NUMBERS)
    by_number, by_rows = x / 49, x / tn.tensor([[49.0], [7.0]])
    by_root = x / tn.tensor([[49.0], [7.0]]).sqrt().expand(2, len(NUMBERS))
    tn.eval(by_number, by_rows, by_root)
    rows = np.array([[49.0], [7.0]], np.float32)
    assert np.array_equal(by_number.numpy(), NUMBERS / np.float32(49))
    assert np.array_equal(by_rows.numpy(), NUMBERS / rows)
    assert np.array_equal(by_root.numpy(), NUMBERS / np.sqrt(rows))


def test_a_divisor_may_be_so_large_that_it_has_no_reciprocal():
    assert (tn.tensor([3e38, 1.5e38]) / tn.tensor(3e38)).tolist() == [1.0, 0.5]


def test_integers_spaced_from_a_tensor_are_the_numbers_between():
    assert tn.linspace(tn.tensor(50), 1, 50, dtype=tn.int64).tolist() == list(range(50, 0, -1))


def test_a_quotient_by_what_is_computed_differentiates():
    x = tn.tensor([2.0, 4.0], requires_grad=True)
    (x / x.sum()).square().sum().backward()
    assert np.allclose(x.grad.numpy(), [-0.07407407, 0.03703704])
