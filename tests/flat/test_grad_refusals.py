"""What reverse mode refuses, and how it says so."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError, UnsupportedError
from tenfold.flat import elementwise as e, structured as s
from tenfold.flat.grad import CUSTOM_GRADIENTS, gradients
from tenfold.flat.indexed import Scatter
from tenfold.flat.ir import TensorType, Value, in_order
from tenfold.flat.windows import SelectAndScatter
from tests.flat.derivative_cases import loop
from tests.flat.derivatives import evaluate

F64 = dtypes.float64


def scalars(count: int) -> list[Value]:
    return [Value(TensorType(F64, ())) for _ in range(count)]


def by(result: Value, *wrt: Value) -> list[Value | None]:
    return gradients(in_order([result]), [result], [flat.full_like(result, 1)], wrt)


def test_an_op_without_a_rule_is_named():
    class Unruled(e.Unary):
        name = "stablehlo.unruled"
        kinds, accepted, result_dtype = "float", frozenset({F64}), None

    (x,) = scalars(1)
    with pytest.raises(UnsupportedError, match="stablehlo.unruled has no gradient rule"):
        by(Unruled(x).result, x)


def test_a_call_without_a_rule_is_named_and_one_with_a_rule_follows_it():
    (x,) = scalars(1)
    called = flat.custom_call("fast_double", (x,), (x.type,))[0]
    with pytest.raises(UnsupportedError, match="the call of 'fast_double' has no gradient"):
        by(called, x)
    CUSTOM_GRADIENTS["fast_double"] = lambda cts, op: [cts[0] * 2.0]
    try:
        (found,) = by(called, x)
    finally:
        del CUSTOM_GRADIENTS["fast_double"]
    assert found is not None and evaluate([x], [found], [np.array(5.0)])[0] == 2


def test_a_composites_rule_must_give_what_its_arguments_are():
    (x,) = scalars(1)
    short = flat.differentiated(lambda ct, result, x: ())(lambda x: x * 2.0)
    with pytest.raises(ArgumentError, match="gives 0 cotangents for 1 arguments"):
        by(short(x), x)
    wide = flat.differentiated(lambda ct, result, x: (flat.broadcast_to(ct, (3,)),))(lambda x: x * 2.0)
    with pytest.raises(ShapeError, match=r"its gradient rule gives f64\[3\] for an operand f64\[\]"):
        by(wide(x), x)


def test_folds_by_functions_of_their_own_are_refused():
    x = Value(TensorType(F64, (4,)))
    half = lambda a, b: (a + b) * 0.5
    body = flat.function(half, [TensorType(F64, ())] * 2)
    start = flat.constant(0.0, F64)
    with pytest.raises(UnsupportedError, match="a reduction by a function of its own has no gradient"):
        by(flat.reduce_with((x,), (0.0,), (0,), half)[0], x)
    with pytest.raises(UnsupportedError, match="has a gradient only where it chooses"):
        pair = lambda a, c, b, d: (a + b, c * d)
        by(flat.reduce_with((x, x), (0.0, 1.0), (0,), pair)[0], x)
    with pytest.raises(UnsupportedError, match="windows folded by a function of its own"):
        by(flat.reduce_window(x, "mul", (2,)), x)
    with pytest.raises(UnsupportedError, match="the start of a max reduction"):
        begin = Value(TensorType(F64, ()))
        by(s.Reduce((x,), (begin,), (0,), flat.monoid("max", F64)).result, begin)
    with pytest.raises(UnsupportedError, match="a scatter by a function of its own"):
        numbers = flat.ScatterDimensions((), (0,), (0,), 1)
        places = flat.iota((4, 1), 0)
        by(Scatter((x,), places, (x,), numbers, False, False, body).result, x)
    with pytest.raises(UnsupportedError, match="only where it adds"):
        greater = flat.function(flat.ge, [TensorType(F64, ())] * 2)
        settings = (2,), (2,), ((0, 0),), greater, body
        source = Value(TensorType(F64, (2,)))
        by(SelectAndScatter(x, source, start, *settings).result, source)


@pytest.mark.parametrize(
    "going, step",
    [
        (lambda k: k < 5, lambda k: k * 2),
        (lambda k: k < 5, lambda k: k - 1),
        (lambda k: flat.ne(k, 5), lambda k: k + 2),
        (lambda k: (k < 5) & (k > -1), lambda k: k + 1),
    ],
)
def test_a_loop_that_may_run_any_number_of_times_is_refused(going, step):
    (x,) = scalars(1)
    (result,) = loop(0, going, step, lambda k, x: (x * 2.0,))(x)
    with pytest.raises(UnsupportedError, match="needs to know how often it runs"):
        by(result, x)


def test_a_bound_may_be_carried_along():
    (x,) = scalars(1)
    start = [flat.constant(each, dtypes.int64) for each in (1, 7, 3)]
    result = flat.while_loop(
        lambda k, bound, step, x: bound > k,
        lambda k, bound, step, x: (k + step, bound, step, x * 2.0),
        [*start, x],
    )[-1]
    (found,) = by(result, x)
    assert found is not None and evaluate([x], [found], [np.array(5.0)])[0] == 4
