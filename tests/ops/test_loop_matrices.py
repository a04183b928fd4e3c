"""Matrices that a loop multiplies a row with are transposed before it, unless the loop changes them."""

from __future__ import annotations

import numpy as np

import tenfold as tn
from tenfold.engines import numpy as tier0
from tenfold.flat.data_ops import Transpose
from tenfold.flat.regions import everywhere
from tenfold.flat.structured import CustomCall, While
from tenfold.ops.loop_matrices import transposed_before_loops
from tenfold.ops.tile_absorbing import absorbed
from tenfold.runtime.calls import record_call
from tenfold.trace.lower import lower

WIDTH = 256


def looped(body, *arguments):
    trace = record_call(body, arguments, {}, tn.Tensor).recording.trace
    return trace, lower(trace, kind="triton")


def run(x, matrix):
    return tn.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, (x @ matrix).tanh()), (tn.tensor(0), x))[1]


def changing(x, matrix):
    step = lambda i, x, matrix: (i + 1, (x @ matrix).tanh(), matrix * 0.5)
    return tn.while_loop(lambda i, x, matrix: i < 3, step, (tn.tensor(0), x, matrix))[1]


def arrays():
    random = np.random.default_rng(0)
    return [
        random.normal(size=(1, WIDTH)).astype(np.float32),
        (random.normal(size=(WIDTH, WIDTH)) * 0.1).astype(np.float32),
    ]


def prepared(function):
    return everywhere(transposed_before_loops(function, "triton"), absorbed, "triton")


def leaves(trace, given):
    by_shape = {array.shape: array for array in given}
    return [
        by_shape.get(leaf.type.shape, np.zeros(leaf.type.shape, leaf.type.dtype.numpy))
        for leaf in trace.leaves
    ]


def test_a_matrix_that_stays_the_same_is_transposed_once():
    given = arrays()
    trace, function = looped(run, *[tn.tensor(array) for array in given])
    program = prepared(function)
    assert sum(isinstance(op, Transpose) for op in program.ops) == 1
    (loop,) = [op for op in program.ops if isinstance(op, While)]
    (call,) = [op for op in loop.body.ops if isinstance(op, CustomCall)]
    assert dict(call.backend_config)["by_rows"] is True
    found, expected = (tier0.run(each, leaves(trace, given))[0] for each in (program, function))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_matrix_that_the_loop_changes_is_taken_as_it_is():
    given = arrays()
    trace, function = looped(changing, *[tn.tensor(array) for array in given])
    program = prepared(function)
    assert not any(isinstance(op, Transpose) for op in program.ops)
    found, expected = (tier0.run(each, leaves(trace, given))[0] for each in (program, function))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
