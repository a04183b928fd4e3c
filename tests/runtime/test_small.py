"""Small programs, which run op by op."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.runtime import small

pytestmark = pytest.mark.usefixtures("on_all_tiers")


@pytest.fixture
def runs_small():
    before = small.ran
    yield
    assert small.ran > before


@pytest.mark.usefixtures("runs_small")
def test_what_is_written_into_a_constant_result_stays_in_it():
    for _ in range(3):
        x = tn.full((3,), 2.0).eval()
        x.add_(1)
        assert x.tolist() == [3.0] * 3
        assert tn.full((3,), 2.0).tolist() == [2.0] * 3


@pytest.mark.usefixtures("runs_small")
def test_a_fold_begins_with_its_initial_value_each_time():
    x = tn.tensor([-0.0, -0.0])
    for _ in range(3):
        total = x.sum()
        assert not np.signbit(total.numpy())
        total.add_(1)
        assert total.item() == 1 and x.tolist() == [-0.0, -0.0]


@pytest.mark.usefixtures("runs_small")
def test_numbers_on_either_side_of_an_op():
    x = tn.tensor([1.0, 2.0, 4.0])
    for _ in range(3):
        assert (x - 1).tolist() == [0, 1, 3] and (1 - x).tolist() == [0, -1, -3]
        assert (8 / x).tolist() == [8, 4, 2] and (x / 2).tolist() == [0.5, 1, 2]
        assert x.clamp(2, 3).tolist() == [2, 2, 3] and (x > 1).tolist() == [False, True, True]


@pytest.mark.usefixtures("runs_small")
def test_views_and_their_bases_have_memory_of_their_own():
    x = tn.tensor([[1.0, 2.0], [3.0, 4.0]])
    row = (x.t() * 1).reshape(4).eval()
    same = x.reshape(4).clone().eval()
    x.fill_(9)
    assert row.tolist() == [1, 3, 2, 4] and same.tolist() == [1, 2, 3, 4]


def test_each_small_program_counts_once():
    x = tn.ones(3).eval()
    for program in (x + 1, ((x + 1) * 2 - x).sum()):
        before = small.ran
        program.tolist()
        assert small.ran == before + 1
