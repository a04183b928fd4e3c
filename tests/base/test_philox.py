"""Random bits on the host."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tenfold.base.philox import raw_bits


@pytest.mark.parametrize("key", (0, 1, 2**64 - 1, 3 << 64 | 5, 2**128 - 1))
@pytest.mark.parametrize("counter", (0, 7, 2**64 - 1, 2**200 + 3))
def test_a_few_bits_are_numpys_without_its_generators(key, counter, monkeypatch):
    expected = np.random.Philox(key=key, counter=counter).random_raw(11)
    monkeypatch.delitem(sys.modules, "numpy.random")
    np.testing.assert_array_equal(raw_bits(key, 11, counter), expected)
    assert raw_bits(key, 11).dtype == np.uint64


def test_many_bits_begin_as_a_few_do(monkeypatch):
    many = raw_bits(12, 5000)
    monkeypatch.delitem(sys.modules, "numpy.random")
    np.testing.assert_array_equal(raw_bits(12, 1000), many[:1000])
