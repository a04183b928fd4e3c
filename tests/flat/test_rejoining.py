"""Vectors cut up and joined again: what cancels, and what must not."""

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat.data_ops import Concatenate
from tenfold.flat.ir import Function, TensorType
from tenfold.flat.rejoining import rejoined
from tenfold.mlir import stablehlo


def vector(size):
    return flat.Value(TensorType(dtypes.float32, (size,)))


def joins(function):
    return [op for op in function.ops if type(op) is Concatenate]


def piece(x, start, limit, shape=None):
    cut = flat.slice(x, (start,), (limit,))
    return cut if shape is None else flat.reshape(flat.reshape(cut, shape), (limit - start,))


def test_all_pieces_of_a_vector_in_order_are_the_vector_itself():
    x = vector(10)
    parts = [piece(x, 0, 4, (2, 2)), piece(x, 4, 5, (1, 1)), piece(x, 5, 10)]
    found = rejoined(Function([x], [flat.concatenate(parts, 0)], "f"))
    assert found.results[0] is x


def test_neighbours_are_cut_out_in_one_piece():
    x, y = vector(10), vector(3)
    parts = [piece(x, 2, 4), piece(x, 4, 8, (2, 2)), y]
    found = rejoined(Function([x, y], [flat.concatenate(parts, 0)], "f"))
    (join,) = joins(found)
    assert [each.shape for each in join.inputs] == [(6,), (3,)]


@pytest.mark.parametrize("order", [(1, 0), (0, 2), (0, 0), (0, 1, 2, 1)])
def test_pieces_out_of_order_stay_as_they_are(order):
    x = vector(6)
    parts = [piece(x, 2 * i, 2 * i + 2, (2, 1)) for i in order]
    function = Function([x], [-flat.concatenate(parts, 0)], "f")
    data = np.arange(6, dtype=np.float32)
    ran = [stablehlo.interpret(stablehlo.emit(each), [data])[0] for each in (function, rejoined(function))]
    np.testing.assert_array_equal(ran[1], -np.concatenate([data[2 * i : 2 * i + 2] for i in order]))
    np.testing.assert_array_equal(*ran)


def test_a_piece_with_strides_is_no_stretch():
    x = vector(6)
    parts = [flat.slice(x, (0,), (6,), (2,)), piece(x, 3, 6)]
    assert len(joins(rejoined(Function([x], [flat.concatenate(parts, 0)], "f")))) == 1
