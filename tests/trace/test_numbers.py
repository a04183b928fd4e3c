"""Numbers that come from tensors travel under marks until an op takes them."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.base.errors import UnsupportedError
from tenfold.ops.table import SLOT, find
from tenfold.trace.numbers import FIRST, Numbers


def test_a_mark_leads_back_to_its_tensor_as_an_integer_and_as_a_float():
    numbers, value, other = Numbers(), tn.tensor(3.0).current(), tn.tensor(4.0).current()
    mark, second = numbers.mark(value), numbers.mark(other)
    assert mark != second and FIRST <= mark < 2 * FIRST and float(mark) == mark
    assert numbers.find(mark) is numbers.find(float(mark)) is value
    assert numbers.find(second) is other


@pytest.mark.parametrize("plain", [0, 1.5, FIRST - 1, FIRST, True, None, "x"])
def test_other_arguments_are_plain(plain):
    numbers = Numbers()
    numbers.mark(tn.tensor(3.0).current())
    assert numbers.find(plain) is None


def test_a_marked_argument_becomes_an_input():
    numbers, x, value = Numbers(), tn.ones(2).current(), tn.tensor(3.0).current()
    inputs = [x]
    callee = numbers.call(find("mul.Scalar"), inputs, (SLOT, numbers.mark(value)))
    assert inputs == [x, value]
    assert callee is not None and callee.result_types == (x.type,)


def test_a_call_without_marks_is_left_alone():
    numbers, inputs = Numbers(), [tn.ones(2).current()]
    assert numbers.call(find("mul.Scalar"), inputs, (SLOT, 2)) is None
    numbers.mark(tn.tensor(3.0).current())
    assert numbers.call(find("mul.Scalar"), inputs, (SLOT, 2)) is None
    assert len(inputs) == 1


def test_a_marked_size_is_refused():
    numbers, inputs = Numbers(), [tn.ones(2).current()]
    mark = numbers.mark(tn.tensor(3).current())
    with pytest.raises(UnsupportedError, match="must know a number that comes from a tensor"):
        numbers.call(find("expand"), inputs, (SLOT, (mark, 2), False))


def test_a_marked_size_is_what_the_recording_takes_it_for():
    numbers, inputs, value = Numbers({0: 7}), [tn.ones(1, 2).current()], tn.tensor(3).current()
    mark = numbers.mark(value, lambda: numbers.size(value, None, None, None))
    callee = numbers.call(find("expand"), inputs, (SLOT, (mark, 2), False))
    assert callee is not None and callee.result_types[0].shape == (7, 2) and len(inputs) == 1
    assert [(size.value, size.size, size.least) for size in numbers.sizes] == [(value, 7, 2)]


def test_a_size_lies_within_what_is_promised():
    numbers, value, other = Numbers({}), tn.tensor(3).current(), tn.tensor(4).current()
    assert 3 <= numbers.size(value, 3, 5, None) <= 5
    assert numbers.size(other, 4, 4, None) == 4  # which is known
    assert [size.value for size in numbers.sizes] == [value]
