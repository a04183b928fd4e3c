"""Who uses a value, what it depends on, and programs rebuilt with calls in the place of several ops."""

from __future__ import annotations

import numpy as np

import tenfold as tn
from tenfold import flat
from tenfold.engines import numpy as tier0
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.ops.tile_units import Graph, Unit, rebuilt, unwidened


def parameter(dtype: tn.dtype = tn.float32) -> Value:
    return Value(TensorType(dtype, (3,)))


def test_conversions_to_one_half_type_narrow_a_value():
    x = parameter()
    y = flat.exp(x)
    first, again = flat.convert(y, tn.bfloat16), flat.convert(y, tn.bfloat16)
    other, whole = flat.convert(y, tn.float16), flat.convert(y, tn.int32)
    graph = Graph(Function([x], [first, again, other, whole, flat.sin(y)]))
    assert graph.narrowing(y) == [first.op, again.op]
    z = flat.cos(x)
    integers, halves = flat.convert(z, tn.int32), flat.convert(z, tn.bfloat16)
    assert Graph(Function([x], [integers, halves])).narrowing(z) == []
    assert graph.narrowing(first) == []


def test_a_value_is_used_by_some_alone_if_it_is_no_result():
    x = parameter()
    y = flat.exp(x)
    users = [flat.sin(y), flat.cos(y)]
    ops = [user.op for user in users]
    assert Graph(Function([x], users)).only(ops, y)
    assert not Graph(Function([x], users)).only(ops[:1], y)
    assert not Graph(Function([x], [*users, y])).only(ops, y)


def test_what_shares_a_call_is_waited_for():
    x, w = parameter(), parameter()
    first = flat.exp(x)
    between = flat.sin(first)
    second = flat.cos(w)
    after = flat.tanh(second)
    graph = Graph(Function([x, w], [between, after]))
    assert graph.depends(between, first.op) and graph.depends(after, second.op)
    assert not graph.depends(second, first.op) and not graph.depends(between, second.op)
    graph.unite(first.op, second.op)
    assert second.op in graph.taken and first.op not in graph.taken
    assert graph.depends(after, first.op) and graph.depends(between, second.op)
    assert not graph.depends(x, first.op)


def test_half_precision_shows_through_a_widening():
    half, whole = parameter(tn.bfloat16), parameter(tn.int32)
    assert unwidened(flat.convert(half, tn.float32)) is half
    for value in (half, flat.convert(half, tn.float64), flat.convert(whole, tn.float32)):
        assert unwidened(value) is value


def test_a_call_stands_for_several_values_wherever_their_ops_are():
    x, w = parameter(), parameter()
    early, late = flat.exp(x), flat.sin(w)
    result = early * late + w
    both = Unit((x, w), lambda inputs: [flat.sin(inputs[1]), flat.exp(inputs[0])], ((1, early), (0, late)))
    function = rebuilt(Function([x, w], [result, early], "step"), {early: both, late: both})
    assert function.name == "step" and function.params == (x, w)
    arrays = [np.array([0.5, 1, 2], np.float32), np.array([3.0, -1, 0], np.float32)]
    found = tier0.run(function, arrays)
    np.testing.assert_allclose(found[0], np.exp(arrays[0]) * np.sin(arrays[1]) + arrays[1], rtol=1e-6)
    np.testing.assert_allclose(found[1], np.exp(arrays[0]), rtol=1e-6)
