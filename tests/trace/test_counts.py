"""Sizes that depend on data: which are one size, and what a recording takes them for."""

from __future__ import annotations

import tenfold as tn
from tenfold.trace.counts import SMALLEST, Counts


def taken(counts: Counts, what: str, tensor: tn.Tensor, bound: int | None = None) -> int:
    value = tensor.current()
    return counts.take((what,), [value], bound, lambda size: (size, value), ("", None))


def test_sizes_counted_alike_from_the_same_values_are_one():
    counts, x, y = Counts(1), tn.ones(100).eval(), tn.ones(100).eval()
    assert taken(counts, "nonzero", x > 0) == taken(counts, "nonzero", x > 0)
    assert len(counts.found) == 1
    taken(counts, "nonzero", y > 0)
    taken(counts, "unique", x > 0)
    assert len(counts.found) == 3


def test_a_size_lies_in_the_upper_half_below_a_power_of_two():
    x = tn.ones(100).eval()
    for turn in range(20):
        counts = Counts(turn)
        assert 64 < taken(counts, "nonzero", x, bound=100) <= 128
        assert counts.found[0].bound == 100 and counts.found[0].bounded
        assert SMALLEST // 2 < taken(counts, "few", x, bound=3) <= SMALLEST


def test_recordings_take_different_sizes_and_the_same_again():
    x = tn.ones(1000).eval()
    sizes = [taken(Counts(turn), "nonzero", x, bound=1000) for turn in (1, 2, 3, 1)]
    assert sizes[0] == sizes[3] and len(set(sizes)) == 3


def test_without_a_bound_there_is_room_for_twice_the_elements_or_what_there_was():
    x = tn.ones(100).eval()
    for room, bound in ((None, 256), ({0: 300}, 512)):
        counts = Counts(1, room)
        taken(counts, "repeat", x)
        assert counts.found[0].bound == bound and not counts.found[0].bounded


def test_a_fixed_size_is_taken_and_of_nothing_there_is_none():
    counts, x = Counts(1, fixed={0: 7}), tn.ones(100).eval()
    assert taken(counts, "nonzero", x, bound=100) == 7
    assert taken(counts, "other", x, bound=0) == 0
    assert len(counts.found) == 1
