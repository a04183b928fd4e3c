"""Convolutions that cut their images themselves: as the StableHLO interpreter computes them."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat.cut_images import cut_within
from tenfold.flat.data_ops import Pad
from tenfold.flat.grad import gradients
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.windows import ConvDimensions, CuttingConvolution
from tenfold.mlir import stablehlo

NUMBERS = ConvDimensions(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))


def convolved(padding, **options):
    """A convolution of an image with a kernel of 2 x 3 elements, and what it takes."""
    x, kernel = (Value(TensorType(dtypes.float32, shape)) for shape in ((2, 3, 7, 8), (4, 3, 2, 3)))
    return [x, kernel], flat.convolution(x, kernel, NUMBERS, padding=padding, **options)


def same(function, cut):
    arrays = [np.random.default_rng(0).random(param.shape, np.float32) for param in function.params]
    expected, found = (stablehlo.interpret(stablehlo.emit(each), arrays) for each in (function, cut))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("padding", "options"),
    [
        (((0, -1), (0, -2)), {}),
        (((2, -1), (1, 3)), {"strides": (2, 1)}),
        (((0, -3), (0, 0)), {"kernel_dilation": (2, 2)}),
    ],
)
def test_an_image_is_cut_by_padding(padding, options):
    params, result = convolved(padding, **options)
    function = Function(params, [result * 2.0, result], "main")
    cut = cut_within(function)
    assert not any(isinstance(op, Pad) for op in cut.ops)
    assert [op.padding for op in cut.ops if type(op) is CuttingConvolution] == [padding]
    same(function, cut)


@pytest.mark.parametrize(
    ("padding", "options"),
    [
        (((-1, 0), (0, 0)), {}),  # at the beginning
        (((0, 1), (0, 2)), {}),
        (((0, -1), (0, 0)), {"x_dilation": (2, 1)}),  # of an image that is spread
    ],
)
def test_other_images_stay_as_they_are(padding, options):
    params, result = convolved(padding, **options)
    function = Function(params, [result], "main")
    assert cut_within(function) is function


def test_what_else_is_padded_there_stays():
    (x, kernel), _ = convolved(((0, 0), (0, 0)))
    cut = flat.pad(x, (0, 0, 0, 0), (0, 0, -2, 0), 0)
    result = flat.convolution(cut, kernel, NUMBERS, padding=((0, 1), (0, 0)))
    function = Function([x, kernel], [result], "main")
    assert cut_within(function) is function


def test_the_gradient_of_a_strided_kernel_cuts_its_image():
    params, result = convolved(((0, 0), (0, 0)), strides=(3, 3))
    cotangent = flat.full(result.shape, 1.0, dtypes.float32)
    (gradient,) = gradients([result.op], [result], [cotangent], params[1:])
    function = Function(params, [gradient], "main")
    cut = cut_within(function)
    assert [op.padding for op in cut.ops if isinstance(op, CuttingConvolution)] == [((0, -2), (0, -2))]
    assert cut.results[0].type is gradient.type
