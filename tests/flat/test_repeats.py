"""Programs that repeat themselves are cut into steps, of which equal ones share a function."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.engines.numpy.plan import plan
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.repeats import Run, kinds, runs, steps

F32 = TensorType(dtypes.float32, (3,))


FUNCTIONS = "tanh", "sin", "cos", "sqrt", "ceil", "floor", "sign", "log1p", "logistic", "cbrt", "erf", "rsqrt"


def layer(x, weight, number=0.5):
    """Ops enough for a step of their own, of which no part repeats."""
    for name in FUNCTIONS:
        x = getattr(flat, name)(flat.abs(x * weight)) + number
        number /= 2
    return x


def layered(count, of=layer):
    params = [Value(F32) for _ in range(count + 1)]
    x, *weights = params
    for weight in weights:
        x = of(x, weight)
    return Function(params, [flat.sqrt(flat.abs(x))])


def results(function, arrays):
    """What a program gives when it is run step by step."""
    known = dict(zip(function.params, arrays, strict=True))
    for step in steps(function):
        given = [known[operand] for operand in step.operands]
        known.update(zip(step.results, plan(step.function)(given), strict=True))
    return [known[result] for result in function.results]


def arrays_for(function):
    generator = np.random.default_rng(0)
    return [generator.normal(size=param.shape).astype(np.float32) for param in function.params]


def functions(function):
    return dict.fromkeys([step.function for step in steps(function)])


def agrees(function):
    arrays = arrays_for(function)
    for found, expected in zip(results(function, arrays), plan(function)(arrays), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "sequence, expected",
    [
        ("ab" * 20, [Run(0, 2, 20)]),
        ("x" + "abcdefghijklmnop" * 3 + "y", [Run(1, 16, 3)]),
        ("abcdefghijklmnop", []),
        ("abcdefghijklmnopabcdefghijklmno", []),
        ("abcdefghijklmnop" * 2 + "z" + "qrstuvwxyz0123456" * 2, [Run(0, 16, 2), Run(33, 17, 2)]),
    ],
)
def test_runs_are_found(sequence, expected):
    assert runs([ord(letter) for letter in sequence]) == expected


def test_of_two_repetitions_the_one_that_saves_more_is_taken():
    part = "aaaaaaaaaaaaaaaaaaaabcdefghijklm"
    assert runs([ord(letter) for letter in part * 5]) == [Run(0, len(part), 5)]


def test_layers_share_a_function():
    function = layered(12)
    assert sum(len(part.ops) for part in functions(function)) < len(function.ops) / 5
    agrees(function)


def test_a_program_without_repetitions_is_one_step():
    function = layered(1)
    assert len(steps(function)) == 1
    agrees(function)


def test_layers_with_other_constants_are_other_functions():
    numbers = iter([0.5, 0.25, -0.0, 0.0])
    function = layered(4, lambda x, weight: layer(x, weight, next(numbers)))
    assert len(steps(function)) == 1
    agrees(function)


def test_values_of_a_layer_that_are_read_later_are_results_of_its_step():
    params = [Value(F32) for _ in range(6)]
    x, *weights = params
    kept = []
    for weight in weights:
        x = layer(x, weight)
        kept.append(x)
    function = Function(params, [*kept[::2], kept[0] + kept[3], params[2], kept[0]])
    assert len(steps(function)) > 5
    agrees(function)


def test_what_all_layers_read_may_be_one_value():
    shared, x, *weights = params = [Value(F32) for _ in range(6)]
    mask = flat.sin(shared)
    for weight in weights:
        x = layer(x * mask, weight)
    function = Function(params, [x])
    assert len(functions(function)) < len(steps(function))
    agrees(function)


def test_layers_that_take_one_value_where_others_take_two_share_a_function():
    x, *weights = params = [Value(F32) for _ in range(6)]
    others = [weights[0], *weights[:-1]]
    for weight, other in zip(weights, others, strict=True):
        x = layer(x * other, weight)
    function = Function(params, [x])
    assert len(functions(function)) < len(steps(function))
    agrees(function)


def test_layers_that_read_values_of_other_layers_in_other_places_keep_their_results():
    x, *weights = params = [Value(F32) for _ in range(7)]
    earlier = x
    for place, weight in enumerate(weights):
        x, earlier = layer(x * earlier, weight), (x if place % 2 else earlier)
    agrees(Function(params, [x]))


def test_ops_are_alike_whatever_values_they_take():
    x, y = Value(F32), Value(F32)
    other = Value(TensorType(dtypes.float64, (3,)))
    ops = [value.op for value in (x + y, y + x, x * y, other + other, flat.full((3,), 1.0, dtypes.float32))]
    numbers = kinds([op for op in ops if op is not None])
    assert numbers[0] == numbers[1] and len(set(numbers)) == 4


def test_loops_are_alike_by_what_their_bodies_do():
    def loop(x, factor):
        return flat.while_loop(lambda x: flat.lt(flat.sum(x), 10.0), lambda x: (x * factor,), (x,))[0].op

    x = Value(F32)
    numbers = kinds([loop(x, 2.0), loop(x, 2.0), loop(x, 3.0)])
    assert numbers[0] == numbers[1] != numbers[2]
