"""Convolutions in XLA's own order: the same numbers, whatever order they came in."""

import itertools

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.engines import xla
from tenfold.flat.channels_last import channels_last
from tenfold.flat.ir import Function, TensorType
from tenfold.flat.windows import ConvDimensions, Convolution
from tenfold.mlir import stablehlo


def shape_in(order, first, second, space):
    """Extents where the dimension numbers say: of two dimensions by themselves, and those of space."""
    shape = [0] * (2 + len(space))
    shape[order[0]], shape[order[1]] = first, second
    for axis, extent in zip(order[2], space, strict=True):
        shape[axis] = extent
    return tuple(shape)


def computed(function, data):
    cpu = Device("cpu")
    executable = xla.compile(stablehlo.emit(function), cpu)
    return xla.fetch(executable([xla.put(each, cpu) for each in data])[0])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_dimensions_changes_no_number(order, groups):
    batch, features, along = order
    numbers = ConvDimensions(batch, features, (along,), along, batch, (features,), features, along, (batch,))
    x = flat.Value(TensorType(dtypes.float32, shape_in((batch, features, (along,)), 2, 4, (7,))))
    kernel = flat.Value(
        TensorType(dtypes.float32, shape_in((along, batch, (features,)), 4 // groups, 6, (3,)))
    )
    result = flat.convolution(
        x, kernel, numbers, strides=(2,), padding=((1, 2),), kernel_dilation=(2,), groups=groups
    )
    function = Function([x, kernel], [flat.add(result, 1)], "f")
    moved = channels_last(function)
    (convolution,) = [op for op in moved.ops if isinstance(op, Convolution)]
    assert convolution.dimension_numbers == ConvDimensions(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
    generator = np.random.default_rng(0)
    data = [generator.normal(size=each.shape).astype(np.float32) for each in (x, kernel)]
    np.testing.assert_allclose(computed(moved, data), computed(function, data), rtol=1e-5, atol=1e-6)


def test_a_program_without_convolutions_is_left_alone():
    x = flat.Value(TensorType(dtypes.float32, (2,)))
    function = Function([x], [-x], "f")
    assert channels_last(function) is function
