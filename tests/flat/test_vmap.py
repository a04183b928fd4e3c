"""What batching keeps, shares and refuses; each op's own rule is put to the test in `test_vmap_rules.py`."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import IndexOutOfRange, UnsupportedError
from tenfold.flat import structured
from tenfold.flat.composite import Composite, differentiated
from tenfold.flat.ir import Function, LateNumber, Op, TensorType, Value
from tenfold.flat.vmap import CUSTOM_BATCHING, batched
from tests.flat.machine import Machine
from tests.flat.test_vmap_rules import collatz, powers, scaled

F32, I64 = dtypes.float32, dtypes.int64


def function_of(build, *types: tuple[dtypes.DType, tuple[int, ...]]) -> Function:
    return flat.function(build, [TensorType(dtype, shape) for dtype, shape in types])


def kinds(function: Function) -> list[str]:
    return [type(op).__name__ for op in function.ops]


def test_what_does_not_depend_on_the_batch_stays_as_it_was():
    plain = function_of(lambda x, y: (flat.tanh(y), x + y, flat.iota((2,), 0), x), (F32, (3,)), (F32, (3,)))
    made, stacked = batched(plain, 5, [None, 1])
    assert [str(each.type) for each in made.params] == ["f32[3]", "f32[3,5]"]
    assert stacked == [True, True, False, False]
    assert [str(each.type) for each in made.results] == ["f32[5,3]", "f32[5,3]", "i64[2]", "f32[3]"]
    made, stacked = batched(plain, 5, [0, None])
    assert stacked == [False, True, False, True]
    assert made.results[0].type is plain.results[0].type and kinds(made)[0] == "Tanh"
    assert batched(plain, 5, [None, None])[1] == [False] * 4


def test_a_number_that_comes_late_may_be_batched_or_not():
    number = LateNumber(TensorType(dtypes.float64, ()))
    x = Value(TensorType(F32, (2,)))
    plain = Function([x, number], [flat.mul(x, number), scaled(x, number, x)])
    shared, _ = batched(plain, 3, [0, None])
    assert type(shared.params[1]) is LateNumber
    own, _ = batched(plain, 3, [None, 0])
    machine = Machine()
    array, numbers = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([1.5, -2, 0])
    inputs = [machine.input(each) for each in (array, array[1], numbers, numbers[0])]
    for i, result in enumerate(shared.inline([inputs[0], inputs[3]])):
        machine.expect("shared", result, array * (1.5 + i))
    for i, result in enumerate(own.inline([inputs[1], inputs[2]])):
        machine.expect("its own", result, array[1] * (numbers[:, None] + i))
    machine.run()


def test_new_ops_keep_the_place_of_the_old():
    plain = function_of(
        lambda x, y, i: flat.dynamic_slice(flat.dot_general(x, y, ((1,), (0,))), (i, i), (1, 1)),
        *[(F32, (3, 3))] * 2, (I64, ()),
    )  # fmt: skip
    for place, op in enumerate(plain.ops):
        op.__dict__["source"] = place
    made, _ = batched(plain, 2, [None, 0, 0])
    assert {op.source for op in made.ops} == {0, 1}
    assert {type(op).__name__: op.source for op in made.ops}.items() >= {"DotGeneral": 0, "Gather": 1}.items()


def test_a_loop_equally_long_for_all_has_no_choices_in_it():
    plain = function_of(powers, *[(F32, (2,))] * 2)
    made, stacked = batched(plain, 4, [0, 0])
    assert stacked == [False, True, True, True, True]
    (loop,) = [op for op in made.ops if type(op) is structured.While]
    assert [each.rank for each in loop.carry] == [0, 2, 2, 2, 2]
    assert "Select" not in kinds(loop.body)
    assert batched(plain, 4, [0, None])[1] == [False, True, False, False, False]


def test_a_loop_carries_what_never_changes_once_for_all():
    assert batched(function_of(collatz, (I64, ()), (I64, ())), 4, [0, None])[1] == [True, True, False]


def test_random_bits_from_one_state_are_the_same_for_all():
    plain = function_of(
        lambda state, x: (flat.random_bits(state, (2,), dtypes.uint32)[1], flat.neg(x)),
        (dtypes.uint64, (2,)), (F32, ()),
    )  # fmt: skip
    made, stacked = batched(plain, 3, [None, 0])
    assert stacked == [False, True] and "While" not in kinds(made)


def test_many_places_in_a_narrow_dtype():
    machine = Machine()
    x, i = np.arange(1200).reshape(300, 4), np.arange(300) % 4
    plain = function_of(
        lambda x, i: (flat.take(x, i, 0), flat.dynamic_update_slice(x, flat.full((1,), -1, I64), (i,))),
        (I64, (4,)), (dtypes.uint8, ()),
    )  # fmt: skip
    made, _ = batched(plain, 300, [0, 0])
    taken, written = made.inline([machine.input(x), machine.input(i, dtypes.uint8)])
    machine.expect("take", taken, x[np.arange(300), i])
    expected = x.copy()
    expected[np.arange(300), i] = -1
    machine.expect("write", written, expected)
    machine.run(interpreter=False)


def test_a_check_holds_if_it_holds_for_all():
    plain = function_of(
        lambda x, y: flat.check(x, flat.lt(y, 2), ValueError, "too large"), (F32, (2,)), (F32, ())
    )
    made, stacked = batched(plain, 3, [None, 0])
    (check,) = [op for op in made.ops if type(op) is structured.Check]
    assert stacked == [False] and check.holds.type.shape == ()
    machine = Machine()
    for y in ([0, 1, 1], [0, 3, 1]):
        holds = Function(made.params, [check.holds]).inline(
            [machine.input(np.ones(2, np.float32)), machine.input(np.array(y, np.float32))]
        )[0]
        machine.expect("holds", holds, np.all(np.array(y) < 2))
    machine.run()


# Composites


def composite_of(function: Function) -> Composite:
    (found,) = [op for op in function.ops if isinstance(op, Composite)]
    return found


def test_a_composite_stays_one_and_its_rule_is_batched():
    """Shared inputs get the sum over the batch, the others each their own; twice over as well."""
    types = (F32, (2,)), (F32, ()), (F32, (2,))
    once, _ = batched(function_of(scaled, *types), 3, [0, None, None])
    twice, _ = batched(once, 2, [0, 0, None])
    machine = Machine()
    rng = np.random.default_rng(0)
    for function, shape, shared in ((once, (3,), ()), (twice, (2, 3), (2,))):
        op = composite_of(function)
        assert [each.shape for each in op.operands] == [(*shape, 2), shared, (2,)]
        ct, x, factor = (rng.normal(0, 1, s).astype(np.float32) for s in ((*shape, 2), (*shape, 2), shared))
        values = [machine.input(each) for each in (ct, ct, x, factor, np.ones(2, np.float32))]
        found = op.rule(values[:1], values[1:2], values[2:])
        spread = factor.reshape(*shared, 1, 1) if shared else factor
        machine.expect("x", found[0], ct * spread, 1e-6)
        machine.expect("factor", found[1], (ct * x).sum((-2, -1)), 1e-5)
        machine.expect("y", found[2], ct.reshape(-1, 2).sum(0), 1e-5)
    machine.run()


@differentiated(lambda cts, results, x, y, n: (None if cts[0] is None else cts[0] * y, cts[1], None))
def several(x, y, n):
    return x * y, flat.neg(y), flat.add(n, 1)


def test_a_composite_of_several_results_with_and_without_cotangents():
    types = (F32, (2,)), (F32, (2,)), (I64, ())
    made, stacked = batched(function_of(several, *types), 3, [0, None, None])
    op = composite_of(made)
    # A result that all share still has one cotangent for each element, of which the rule takes the sum.
    assert stacked == [True] * 3 and op.results[1].shape == (3, 2)
    machine = Machine()
    ct = np.arange(6, dtype=np.float32).reshape(3, 2)
    y = np.array([2, 3], np.float32)
    results = [machine.input(ct), machine.input(ct), machine.input(np.zeros(3, np.int64))]
    inputs = [machine.input(ct), machine.input(y), machine.input(np.array(1))]
    both = op.rule([machine.input(ct), machine.input(ct + 1), None], results, inputs)
    assert both[2] is None
    machine.expect("x", both[0], ct * y)
    machine.expect("y", both[1], (ct + 1).sum(0))
    first = op.rule([machine.input(ct), None, None], results, inputs)
    machine.expect("x alone", first[0], ct * y)
    assert first[1:] == [None, None]
    second = op.rule([None, machine.input(ct), None], results, inputs)
    machine.expect("y alone", second[1], ct.sum(0))
    assert second[0] is None
    machine.run()


def test_half_precision_cotangents_are_summed_in_float32():
    made, _ = batched(function_of(scaled, *[(dtypes.bfloat16, ())] * 3), 1000, [0, None, None])
    op = composite_of(made)
    machine = Machine()
    ones = np.ones(1000)
    ct, x = machine.input(ones, dtypes.bfloat16), machine.input(ones, dtypes.bfloat16)
    one = machine.input(1, dtypes.bfloat16)
    machine.expect("y", op.rule([ct], [x], [x, one, one])[2], 1000)
    machine.run()


# What cannot be batched


class Unheard(Op):
    name = "tenfold.unheard"
    x: Value

    def infer(self) -> TensorType:
        return self.x.type


def test_an_op_without_a_rule_is_named():
    with pytest.raises(UnsupportedError, match="vmap: there is no rule for tenfold.unheard"):
        batched(function_of(lambda x: Unheard(x).result, (F32, ())), 2, [0])
    assert batched(function_of(lambda x: Unheard(x).result, (F32, ())), 2, [None])[1] == [False]


def test_a_custom_call_is_batched_by_the_rule_for_its_target(monkeypatch):
    plain = function_of(lambda x: flat.custom_call("library", [x], [x.type]), (F32, (2,)))
    looped, stacked = batched(plain, 3, [0])
    assert any(isinstance(op, structured.While) for op in looped.ops) and stacked == [True]
    monkeypatch.setitem(
        CUSTOM_BATCHING, "library", lambda op, b: b.again(op, result_types=(b(op.inputs[0]).type,))
    )
    made, stacked = batched(plain, 3, [0])
    assert stacked == [True] and made.results[0].type is TensorType(F32, (3, 2))


def test_a_batch_dimension_out_of_range_is_refused():
    plain = function_of(flat.neg, (F32, (2,)))
    for dim in (2, -3):
        with pytest.raises(IndexOutOfRange, match=f"dimension {dim} is out of range"):
            batched(plain, 3, [dim])
