"""Weights that are updated after all products with them: XLA copies none, and the numbers stay the same."""

import re

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.engines import xla
from tenfold.flat.in_place import updated_last
from tenfold.flat.ir import Function, TensorType
from tenfold.mlir import stablehlo

SIZE = 64


def matrix():
    return flat.Value(TensorType(dtypes.float32, (SIZE, SIZE)))


def product(x, y):
    return flat.dot_general(x, y, contract=((1,), (0,)))


def layer():
    """A weight's update, and the gradient that goes on through the weight."""
    weight, x, gradient = matrix(), matrix(), matrix()
    update = weight - product(flat.transpose(x, (1, 0)), gradient)
    further = product(gradient, flat.transpose(weight, (1, 0)))
    return Function([weight, x, gradient], [update, further], "layer")


def copies(function, donated):
    executable = xla.compile(stablehlo.emit(function, donated), Device("cpu"))
    return re.findall(r" copy\(", executable.hlo())


def test_an_update_waits_for_the_products_with_the_weight():
    donated = ((0, 0),)
    assert copies(layer(), donated)  # else all of this could go
    assert not copies(updated_last(layer(), donated), donated)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -0.0])
def test_what_is_computed_stays_the_same_whatever_a_product_is(odd):
    data = [np.random.default_rng(i).normal(size=(SIZE, SIZE)).astype(np.float32) for i in range(3)]
    data[2][0, 0] = odd
    function = layer()
    ran = [
        stablehlo.interpret(stablehlo.emit(each), data)
        for each in (function, updated_last(function, ((0, 0),)))
    ]
    for before, after in zip(*ran, strict=True):
        np.testing.assert_array_equal(before, after)


def test_nothing_waits_for_what_comes_before_it_anyway():
    weight, x = matrix(), matrix()
    function = Function([weight, x], [weight - product(x, weight)], "f")
    assert updated_last(function, ((0, 0),)).results == function.results
