"""The gradient of as_strided_scatter, which PyTorch gives to the elements that were written over."""

import numpy as np
import pytest

import tenfold as tn


@pytest.mark.parametrize(
    "size, stride, offset", [((2, 2), (1, 2), 0), ((2, 2), (4, 1), 1), ((3,), (5,), 0), ((), (), 2)]
)
def test_gradients_of_a_strided_write_are_those_of_finite_differences(size, stride, offset):
    written = tn.arange(float(np.prod(size)), dtype=tn.float64).reshape(size)
    x = tn.arange(12.0, dtype=tn.float64).reshape(3, 4)
    assert tn.autograd.gradcheck(
        lambda x, y: x.as_strided_scatter(y, size, stride, offset),
        (x.requires_grad_(), written.requires_grad_()),
    )
