"""Programs that differ in sizes alone share a key."""

from __future__ import annotations

import tenfold as tn
from tenfold.trace.collect import collect
from tenfold.trace.skeleton import skeleton_of


def skeleton(result):
    return skeleton_of(collect([result._value])[0])


def test_programs_of_other_sizes_share_the_key_but_not_the_numbers():
    key, numbers = skeleton((tn.ones(3, 4) * 2).sum(0))
    other, others = skeleton((tn.ones(5, 4) * 2).sum(0))
    assert key == other
    assert numbers != others


def test_another_dimension_count_is_another_key():
    assert skeleton(tn.ones(3, 4) * 2)[0] != skeleton(tn.ones(3, 4, 5) * 2)[0]


def test_the_key_is_the_same_after_thousands_of_other_programs():
    first = tn.ones(6, 4) * 2
    key, _ = skeleton(first)
    for i in range(3000):
        skeleton(first - (0.5 + i))
    assert skeleton(tn.ones(7, 4) * 2)[0] == key
    assert skeleton(tn.ones(6, 4) * 2)[0] == key
