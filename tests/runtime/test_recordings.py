"""Recordings of a call at several sizes, and what must be alike in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.errors import UnsupportedError
from tenfold.runtime import recordings
from tenfold.runtime.plan import Plan
from tenfold.runtime.recordings import OpenDims, Recorder, UnknownSizes, require_alike, require_plain

DIMS = OpenDims({(0, 0): 0, (2, 1): 1, (1, 0): 0}, ((2, 16), (17, 32)))


def recorder(function: Callable[..., Any], *args: Any, room: dict[int, int] | None = None) -> Recorder:
    return Recorder(function, args or (tn.ones(4),), {}, tn.Tensor, room)


def test_sizes_of_symbols_are_read_from_shapes_and_put_into_them():
    shapes = [(5, 3), (5,), (4, 20)]
    assert DIMS.sizes(shapes) == [5, 20]
    assert DIMS.shapes(shapes, [7, 30]) == [[7, 3], [7], [4, 30]]
    assert shapes == [(5, 3), (5,), (4, 20)]


def test_a_symbol_with_one_size_alone_is_closed():
    assert DIMS.narrowed([5, 20], ()) is DIMS
    assert DIMS.narrowed([5, 20], [(3, 5), (18, 20)]) == OpenDims(DIMS.dims, ((3, 5), (18, 20)))
    assert DIMS.narrowed([5, 20], [(5, 5), (18, 20)]) == OpenDims({(2, 1): 0}, ((18, 20),))
    with pytest.raises(UnsupportedError, match="fails at sizes other than 5, 20"):
        DIMS.narrowed([5, 20], [(5, 5), (20, 20)])


def test_a_call_is_recorded_once_for_each_shape_turn_and_count(monkeypatch):
    recorded = []
    record = recordings.record_call
    monkeypatch.setattr(
        recordings, "record_call", lambda *args, **options: recorded.append(1) or record(*args, **options)
    )
    calls = recorder(lambda x: x[x > 0])
    first = calls.at([(4,)])
    assert calls.at([[4]]) is first
    for other in (calls.at([(5,)]), calls.at([(4,)], turn=2), calls.at([(4,)], counts=[3])):
        assert other is not first
    assert len(recorded) == 4
    assert calls.at([(4,)], counts=[3]).counts[0].size == 3
    assert calls.at([(5,)]).trace.leaves[0].type.shape == (5,)


def test_what_the_function_asks_of_sizes_is_kept_by_shape():
    calls = recorder(lambda x: x * (2 if x.shape[0] > 5 else 3))
    calls.at([(4,)]), calls.at([(9,)])
    assert [asked.answer for asked in calls.asked_at([(4,)])] == [False]
    assert [asked.answer for asked in calls.asked_at([[9]])] == [True]
    plan = calls.plainly()
    assert calls.own is plan and len(calls.asked) == 2


def test_sizes_that_must_be_known_are_told_apart_from_other_errors():
    with pytest.raises(UnknownSizes, match="depends on data, and has to be known here") as told:
        recorder(lambda x: x[x > 0] + tn.ones(3)).plainly()
    assert isinstance(told.value.__cause__, tn.ShapeError) and told.value.op == "compile"
    with pytest.raises(tn.ShapeError):
        recorder(lambda x: x + tn.ones(3)).plainly()


def test_sizes_are_computed_one_after_the_other_where_they_must_be_known():
    def function(x):
        kept = x[x > 0] + tn.ones(3)  # where exactly three are
        return kept[kept > 2.5] + tn.ones(2)

    plan = recorder(function, tn.tensor([1.0, -1, 2, 3, -5])).exactly()
    assert [count.size for count in plan.counts] == [3, 2]
    with pytest.raises(tn.ShapeError, match=r"f32\[2\] with f32\[3\]"):
        recorder(function, tn.tensor([1.0, -1, 2, -3, -5])).exactly()


def test_an_error_names_the_size_its_reason_and_a_way_out():
    counts = recorder(lambda x: x[x > 0]).at([(4,)]).counts
    error = UnknownSizes(counts, "it is asked for", "say so")
    assert error.message == "the size of x[x > 0] depends on data, and has to be known here: it is asked for"
    assert error.help == "say so" and "one mask" in UnknownSizes(counts).help


# What must be alike


def plans(function: Callable[..., Any], *sizes: int) -> list[Plan]:
    calls = recorder(function)
    return [calls.at([(size,)]) for size in sizes or (4, 5)]


STATE, OTHER = tn.ones(()), tn.zeros(())

ALIKE = {
    "other numbers": lambda x: x.reshape(1, -1) * 2,
    "state": lambda x: (STATE.add_(x.sum()), x * 2)[1],
    "its argument": lambda x: x,
    "what it makes of numbers": lambda x: x.sum() + tn.tensor([1.0, 2.0]).sum(),
}

DIFFERENT = {
    "another structure": (lambda x: x if x.shape[0] < 5 else (x, x), "does other things to tensors outside"),
    "more results": (lambda x: [x * i for i in range(x.shape[0])], "does other things to tensors outside"),
    "another state": (
        lambda x: (STATE if x.shape[0] < 5 else OTHER).add_(x.sum()), "does other things to tensors outside"
    ),
    "the argument or a new one": (
        lambda x: x if x.shape[0] < 5 else x * 1, "does other things to tensors outside"
    ),
    "writes": (
        lambda x: (x.add_(1) if x.shape[0] < 5 else x, x.sum())[1], "does other things to tensors outside"
    ),
    "another tensor": (
        lambda x: x.sum() + (STATE * OTHER if x.shape[0] < 5 else STATE), "reads other tensors at other sizes"
    ),
    "other numbers in a tensor": (
        lambda x: x.sum() + tn.tensor([1.0, x.shape[0]]).sum(), "of Python's numbers that is another one"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ALIKE)
def test_programs_that_differ_in_sizes_alone_are_alike(case):
    first, other = plans(ALIKE[case])
    assert require_alike(first, other) == {}


@pytest.mark.parametrize("case", DIFFERENT)
def test_programs_that_do_other_things_are_refused(case):
    function, message = DIFFERENT[case]
    first, other = plans(function)
    with pytest.raises(UnsupportedError, match=message):
        require_alike(first, other)


@pytest.mark.parametrize("number", [7.0, 0.0, -0.0, float("nan")])
def test_a_tensor_of_open_size_that_is_full_of_one_number_is_told(number):
    first, other = plans(lambda x: x + tn.tensor([number] * x.shape[0]))
    ((place, found),) = require_alike(first, other).items()
    assert first.trace.leaves[place].type.shape == (4,)
    assert found.tobytes() == np.float32(number).tobytes()


def test_zeros_of_both_signs_and_empty_tensors_are_not_full_of_one_number():
    for make in (
        lambda size: [0.0] * (size - 1) + [-0.0],
        lambda size: [0.0 if size < 5 else -0.0] * size,
        lambda size: [1.0] * size if size > 4 else [2.0] * size,
        lambda size: [float(i) for i in range(size)],
    ):
        first, other = plans(lambda x, make=make: x + tn.tensor(make(x.shape[0])))
        with pytest.raises(UnsupportedError, match="of Python's numbers"):
            require_alike(first, other)
    first, other = plans(lambda x: x.sum() + tn.tensor([1.0] * (x.shape[0] - 4)).sum())
    with pytest.raises(UnsupportedError, match="of Python's numbers"):
        require_alike(first, other)


def test_calls_that_are_not_just_run_are_refused():
    calls = []
    plain, counting = (
        recorder(function).plainly() for function in (lambda x: x * 2, lambda x: calls.append(1) or x * 2)
    )
    require_plain(plain, steady=True)
    require_plain(counting, steady=False)
    with pytest.raises(UnsupportedError, match="changes Python state"):
        require_plain(counting, steady=True)
    weight = tn.ones(4, requires_grad=True)
    with pytest.raises(UnsupportedError, match="gradients of a compiled function's results"):
        require_plain(recorder(lambda x: x * weight).plainly(), steady=False)
