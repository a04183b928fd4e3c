"""Programs that differ only in Python numbers are one program that takes the numbers."""

from __future__ import annotations

import tenfold as tn
from tenfold.base.devices import Device
from tenfold.trace.collect import Trace, collect
from tenfold.trace.late_numbers import loose_key, open_numbers


def program(tensor: tn.Tensor) -> Trace:
    return collect([tensor.current()])[0]


def test_numbers_are_no_part_of_the_loose_key():
    x = tn.ones(3)
    first, second = program((x * 2.5).sin() + 7), program((x * 0.5).sin() + 9)
    assert first.key != second.key
    assert loose_key(first)[0] == loose_key(second)[0]
    assert [loose_key(first)[1], loose_key(second)[1]] == [[2.5, 7], [0.5, 9]]


def test_programs_of_other_ops_have_other_loose_keys():
    x = tn.ones(3)
    assert loose_key(program(x * 2.5))[0] != loose_key(program(x - 2.5))[0]


def test_the_opened_program_takes_leaves_and_then_numbers():
    x, y = tn.ones(3).eval(), tn.zeros(3).eval()
    original = program((x * 2.5 + y) * 7.5)
    opened = open_numbers(original, Device("cpu"))
    assert opened.order == (0, 2, 1, 3)  # x, its factor, y, and the factor of the sum
    assert [leaf.type.shape for leaf in opened.program.leaves] == [(3,), (), (3,), ()]
    assert len(opened.program.nodes) == len(original.nodes)


def test_an_output_that_is_a_leaf_stays_one():
    x = tn.ones(3).eval()
    original = collect([(x * 2.5).current(), x.current()])[0]
    opened = open_numbers(original, Device("cpu"))
    place, _ = opened.program.outputs[1]
    assert place < 0 and opened.program.leaves[-1 - place] is x.current()
