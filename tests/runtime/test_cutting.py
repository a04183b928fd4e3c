"""Loops that nobody reads are cut where they repeat themselves."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn
from tenfold.runtime import executables
from tenfold.runtime.cutting import LONG, SHORT, _period
from tenfold.runtime.executables import counting_compiles


@pytest.mark.parametrize(
    ("sequence", "period"),
    [("abcabcabcab", 3), ("aaaa", 1), ("abaaba", 3), ("aabaabaac", 0), ("abcd", 0), ("abcdabcd", 4), ("", 0)],
)
def test_the_period_of_a_sequence(sequence, period):
    assert _period(sequence) == period


def body(x, w):
    """Seven ops, of which some are alike: no divisor of the depth at which loops are cut."""
    return ((x * w).tanh() * w + 1).tanh() * w - 1


@pytest.fixture
def programs():
    """Every program of some length that runs."""
    found = []
    with executables.observing(lambda program, _: found.append(program) if len(program.nodes) > 9 else None):
        yield found


def test_pieces_of_a_loop_are_one_program(programs):
    x, w = tn.ones(300).eval(), tn.full((300,), 0.5).eval()
    with counting_compiles() as compiles:
        for _ in range(400):
            x = body(x, w)
        total = x.sum().item()
    expected, half = torch.ones(300), torch.full((300,), 0.5)
    for _ in range(400):
        expected = body(expected, half)
    assert total == pytest.approx(expected.sum().item(), 1e-4)
    assert compiles <= 2 and len(programs) <= 2  # a whole piece, and what is left at the end
    assert all(len(program.nodes) < 2 * SHORT for program in programs)


def test_a_loop_that_starts_elsewhere_is_cut_at_one_place(programs):
    w = tn.full((300,), 0.5).eval()
    x = w.exp().log().sqrt()
    for _ in range(300):
        x = body(x, w)
    x.eval()
    assert len(programs) <= 3


def test_a_loop_that_is_read_is_not_cut_as_well(programs):
    x, w = tn.ones(300).eval(), tn.full((300,), 0.5).eval()
    for i in range(300):
        x = (body(x, w), i % 9 or x.sum().item())[0]  # what follows x is recorded before x is read
    assert len(programs) <= 2


def test_a_loop_that_gradients_flow_through_is_left_whole(programs):
    w = tn.full((3,), 0.5).requires_grad_()
    x = tn.ones(3)
    for _ in range(SHORT // 7 + 5):
        x = body(x, w)
    assert x.current().buffer is None and not programs


def test_a_long_chain_without_rounds_is_computed_at_last():
    x = tn.ones(2)
    depths = []
    for i in range(LONG + 10):
        x = x + i * i  # each number is another callee
        depths.append(0 if x.current().node is None else x.current().node.depth)
    assert max(depths) >= LONG - 1 and depths[-1] < 20
