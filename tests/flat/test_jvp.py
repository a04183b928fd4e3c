"""Forward mode: what only it does. That each rule agrees with the gradient is in test_grad.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ShapeError, UnsupportedError
from tenfold.flat import elementwise as e, structured as s
from tenfold.flat.grad import CUSTOM_GRADIENTS, gradients
from tenfold.flat.ir import TensorType, Value, in_order
from tenfold.flat.jvp import JVPS, tangents
from tenfold.flat.windows import SelectAndScatter
from tests.flat.derivatives import evaluate, inputs
from tests.flat.test_ir import CLASSES

F64 = dtypes.float64


def along(result: Value, xs: list[Value], ts: list[Value | None]) -> Value | None:
    return tangents(in_order([result]), xs, ts, [result])[0]


def scalars(count: int) -> list[Value]:
    return [Value(TensorType(F64, ())) for _ in range(count)]


def test_every_op_has_a_rule():
    assert set(JVPS) == {*CLASSES, flat.Composite}


def test_tangents_are_pytorchs():
    random = np.random.default_rng(3)
    functions = {
        "layer": (
            lambda x, w: flat.tanh(flat.dot_general(x, w, ((1,), (0,)))),
            lambda x, w: torch.tanh(x @ w),
            ((3, 4), (4, 2)),
        ),
        "softmax": (
            lambda x: flat.exp(x) / flat.sum(flat.exp(x), 1, True),
            lambda x: torch.softmax(x, 1),
            ((3, 4),),
        ),
        "amax": (lambda x: flat.reduce(x, "max", 1), lambda x: x.amax(1), ((3, 4),)),
        "prod": (lambda x: flat.reduce(x, "mul", 1), lambda x: x.prod(1), ((3, 4),)),
        "top_k": (lambda x: flat.top_k(x, 2)[0], lambda x: x.topk(2)[0], ((3, 4),)),
    }
    params, arrays, values, expected = [], [], [], []
    for build, function, shapes in functions.values():
        points, moves = [[random.standard_normal(shape) for shape in shapes] for _ in range(2)]
        xs, ts = inputs(points), inputs(moves)
        values.append(along(build(*xs), xs, list(ts)))
        primals, directions = [tuple(map(torch.from_numpy, each)) for each in (points, moves)]
        expected.append(torch.func.jvp(function, primals, directions)[1].numpy())
        params += [*xs, *ts]
        arrays += [*points, *moves]
    for name, found, wanted in zip(functions, evaluate(params, values, arrays), expected, strict=True):
        np.testing.assert_allclose(found, wanted, 1e-12, 1e-12, err_msg=name)


def test_ties_share_a_tangent_as_they_share_a_gradient():
    array, move = np.array([1.0, 3.0, 3.0]), np.array([5.0, 1.0, 2.0])
    (x,), (t,) = inputs([array]), inputs([move])
    found = along(flat.reduce(x, "max", 0), [x], [t])
    assert evaluate([x, t], [found], [array, move])[0] == 1.5


def test_a_loop_may_run_any_number_of_times():
    """Newton's steps towards a root, until they are small: the root of x^2 = a moves by 1 / (2 sqrt(a))."""
    a, t = scalars(2)
    close = lambda x, a: flat.abs(x * x - a) > 1e-14
    root = flat.while_loop(close, lambda x, a: ((x + a / x) * 0.5, a), [flat.full_like(a, 3.0), a])[0]
    found = along(root, [a], [t])
    value, moved = evaluate([a, t], [root, found], [np.array(2.0), np.array(1.0)])
    np.testing.assert_allclose([value, moved], [np.sqrt(2), 0.5 / np.sqrt(2)], 1e-12)


def test_a_tangent_can_be_differentiated_and_a_gradient_pushed_forward():
    """The second derivative of sin(x) * x^3, both ways."""
    x, t = scalars(2)
    y = flat.sin(x) * x**3
    forward = along(y, [x], [t])
    (reverse_of_forward,) = gradients(in_order([forward]), [forward], [flat.full_like(y, 1)], [x])
    (reverse,) = gradients(in_order([y]), [y], [flat.full_like(y, 1)], [x])
    forward_of_reverse = along(reverse, [x], [t])
    forward_of_forward = along(forward, [x], [t])
    values = [reverse_of_forward, forward_of_reverse, forward_of_forward]
    point = np.array(0.7)
    expected = -np.sin(point) * point**3 + 6 * point**2 * np.cos(point) + 6 * point * np.sin(point)
    np.testing.assert_allclose(evaluate([x, t], values, [point, np.array(1.0)]), [expected] * 3, 1e-13)


def test_what_does_not_move_or_lead_to_a_result_costs_nothing():
    x, y, t = scalars(3)
    still, aside = flat.zeta(y, y), flat.zeta(x, y)
    result = flat.sin(x) * still
    ops = in_order([result, aside])
    (found, unmoved, jump) = tangents(ops, [x, y], [t, None], [result, still, flat.floor(x)])
    assert found is not None and unmoved is None and jump is None
    assert sum(isinstance(op, e.Zeta) for op in in_order([found])) == 1


def test_tangents_of_integers_are_none():
    x = Value(TensorType(F64, (4,)))
    values, places = flat.top_k(x, 2)
    found = tangents([values.op], [x], [flat.full_like(x, 1)], [values, places])
    assert found[0] is not None and found[1] is None


def test_the_choice_of_select_and_scatter_stays():
    x, source = Value(TensorType(F64, (4,))), Value(TensorType(F64, (2,)))
    greater = flat.function(flat.ge, [TensorType(F64, ())] * 2)
    settings = (2,), (2,), ((0, 0),), greater
    start = flat.constant(0.0, F64)
    chosen = SelectAndScatter(x, source, start, *settings, flat.monoid("add", F64)).result
    assert along(chosen, [x], [flat.full_like(x, 1)]) is None
    found = along(chosen, [source], [flat.full_like(source, 1)])
    arrays = [np.array([1.0, 2.0, 4.0, 3.0]), np.array([5.0, 6.0])]
    assert evaluate([x, source], [found], arrays)[0].tolist() == [0, 1, 1, 0]
    largest = SelectAndScatter(x, source, start, *settings, flat.monoid("max", F64)).result
    with pytest.raises(UnsupportedError, match="only where it adds"):
        along(largest, [source], [flat.full_like(source, 1)])


def test_a_call_moves_by_its_gradient_rule():
    (x,) = scalars(1)
    called = flat.custom_call("fast_double", (x,), (x.type,))[0]
    with pytest.raises(UnsupportedError, match="'fast_double' has no gradient"):
        along(called, [x], [flat.full_like(x, 1)])
    CUSTOM_GRADIENTS["fast_double"] = lambda cts, op: [cts[0] * 2.0]
    try:
        found = along(called, [x], [flat.full_like(x, 3)])
    finally:
        del CUSTOM_GRADIENTS["fast_double"]
    assert evaluate([], [found], [])[0] == 6


def test_a_tangent_has_its_values_type():
    (x,) = scalars(1)
    with pytest.raises(ShapeError, match=r"the tangent of f64\[\] is of its type, not f64\[2\]"):
        along(flat.sin(x), [x], [flat.full((2,), 1, F64)])


def test_an_op_without_a_rule_is_named():
    class Unruled(e.Unary):
        name = "stablehlo.unruled"
        kinds, accepted, result_dtype = "float", frozenset({F64}), None

    (x,) = scalars(1)
    with pytest.raises(UnsupportedError, match="stablehlo.unruled has no tangent rule"):
        along(Unruled(x).result, [x], [flat.full_like(x, 1)])
    assert s.RngBitGenerator in JVPS
