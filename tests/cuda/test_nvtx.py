"""`tenfold.cuda.nvtx`: named ranges, which stand in profiles."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.cuda import nvtx
from tenfold.profiler import profile


def test_ranges_nest_and_stand_in_profiles():
    @nvtx.range("step {}", 3)
    def step():
        return tn.ones(2) + 1

    with profile() as found:
        assert nvtx.range_push("outer") == 0
        assert nvtx.range_push("inner") == 1
        step()
        nvtx.mark("now")
        assert nvtx.range_pop() == 1
        assert nvtx.range_pop() == 0
        number = nvtx.range_start("apart")
        nvtx.range_end(number)
    names = {each.key for each in found.key_averages()}
    assert {"outer", "inner", "step 3", "now", "apart"} <= names


def test_a_range_that_is_not_open_is_not_ended():
    with pytest.raises(tn.TenfoldError, match="no range is open"):
        nvtx.range_pop()
    with pytest.raises(tn.TenfoldError, match="no range has the number"):
        nvtx.range_end(0)
