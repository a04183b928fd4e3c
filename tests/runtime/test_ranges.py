"""Ranges of open sizes: which sizes share an executable, and at which of them a program is recorded."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tenfold.runtime.ranges import BETWEEN, Mark, bucket, chosen, end_of, possible


@pytest.mark.parametrize(
    ("size", "range"),
    [(2, (2, 16)), (16, (2, 16)), (17, (17, 32)), (32, (17, 32)), (33, (33, 64)), (1000, (513, 1024))],
)
def test_sizes_up_to_a_power_of_two_share_an_executable(size, range):
    assert bucket(size) == range


def test_every_size_is_within_its_own_range_and_ranges_do_not_overlap():
    ranges = {bucket(size) for size in range(2, 3000)}
    assert all(low <= size <= high for size in range(2, 3000) for low, high in [bucket(size)])
    ends = sorted(ranges)
    assert all(high + 1 == low for (_, high), (low, _) in pairwise(ends))


def test_what_the_user_says_of_a_dimension_bounds_its_range():
    assert bucket(40, Mark(True, max=100)) == (2, 100)
    assert bucket(40, Mark(True, min=38)) == (38, 64)
    assert bucket(40, Mark(True, min=5, max=100)) == (5, 100)


@pytest.mark.parametrize("last", [20, 21, 50, 63, 64])
def test_the_end_of_a_range_is_the_last_size_that_works(last):
    assert end_of(lambda size: size > last, 20, 64) == last


@pytest.mark.parametrize("first", [17, 18, 19, 20])
def test_a_range_may_end_below(first):
    assert end_of(lambda size: size < first, 20, 17) == first


def test_ranges_are_narrowed_to_what_can_be_recorded():
    def record(sizes):
        if sizes[0] > 40 or sizes[1] < 20:
            raise IndexError("beyond the table of positions")

    assert possible(record, [(33, 64), (17, 32)], [35, 25]) == [(33, 40), (20, 32)]


def test_programs_are_recorded_at_both_ends_and_in_between():
    rows = chosen([(17, 32)], [20], set())
    sizes = [size for (size,) in rows]
    assert {17, 32} <= set(sizes) and len(sizes) == 2 + BETWEEN
    assert 20 not in sizes and len(set(sizes)) == len(sizes)
    assert rows == chosen([(17, 32)], [20], set())  # the same at every run


def test_two_sizes_are_never_the_same_throughout():
    rows = chosen([(17, 32), (17, 32)], [20, 20], set())
    assert any(first != second for first, second in rows)


def test_sizes_that_the_program_has_besides_are_avoided_in_between():
    fixed = set(range(18, 30))
    between = {size for (size,) in chosen([(17, 32)], [20], fixed)} - {17, 32}
    assert between <= {30, 31}


def test_a_small_range_has_what_there_is():
    assert sorted(chosen([(2, 3)], [2], set())) == [[3]]
