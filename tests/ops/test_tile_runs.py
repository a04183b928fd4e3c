"""Kernels that read runs of a parameter in place."""

from __future__ import annotations

import numpy as np

import tenfold as tn
from tenfold import flat
from tenfold.engines import numpy as tier0
from tenfold.flat.data_ops import Slice
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.structured import CustomCall
from tenfold.mlir import stablehlo
from tenfold.ops.tile_kernels import call_norm
from tenfold.ops.tile_runs import read_in_place

WIDTH = 128


def norm_of_runs():
    """A layer norm whose weight and bias are runs of one vector; and the weight, doubled."""
    x = Value(TensorType(tn.float32, (3, WIDTH)))
    vector = Value(TensorType(tn.float32, (4 * WIDTH,)))
    weight = flat.reshape(flat.slice(vector, (WIDTH,), (2 * WIDTH,)), (WIDTH,))
    bias = flat.slice(vector, (3 * WIDTH,), (4 * WIDTH,))
    return Function([x, vector], [call_norm(x, weight, bias, WIDTH, 1e-5)[0], weight * 2])


def test_a_kernel_takes_the_parameter_itself():
    function = norm_of_runs()
    moved = read_in_place(function)
    (call,) = [op for op in moved.ops if isinstance(op, CustomCall)]
    assert call.inputs == (moved.params[0], moved.params[1], moved.params[1])
    assert len([op for op in moved.ops if isinstance(op, Slice)]) == 1  # for the weight that is doubled
    random = np.random.default_rng(0)
    arrays = [random.normal(size=each.type.shape).astype(np.float32) for each in function.params]
    for found, expected in zip(tier0.run(moved, arrays), tier0.run(function, arrays), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert f"arith.constant {3 * WIDTH} : i32" in stablehlo.emit(moved).text()


def test_what_is_computed_or_has_gaps_is_cut_out_first():
    x = Value(TensorType(tn.float32, (3, WIDTH)))
    vector = Value(TensorType(tn.float32, (2 * WIDTH,)))
    computed = flat.slice(vector * 2, (0,), (WIDTH,))
    every_second = flat.slice(vector, (0,), (2 * WIDTH,), (2,))
    function = Function([x, vector], [call_norm(x, computed, every_second, WIDTH, 1e-5)[0]])
    (call,) = [op for op in read_in_place(function).ops if isinstance(op, CustomCall)]
    assert call.inputs[1].type.shape == call.inputs[2].type.shape == (WIDTH,)
