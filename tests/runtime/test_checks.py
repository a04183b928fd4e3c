"""Run-time checks: which one is named, what a failure leaves behind, and when a program branches instead."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.flat.structured import Case, Check
from tenfold.runtime.checks import CHEAP, LARGE, guarded

CPU, CUDA = Device("cpu"), Device("cuda")


def counter(size: int, checks: int = 2) -> flat.Function:
    """A program that adds a number to its state, unless the number is below some bounds."""
    state = flat.Value(flat.TensorType(dtypes.float32, (size,)))
    number = flat.Value(flat.TensorType(dtypes.float32, ()))
    checked = number
    for bound in range(checks):
        checked = flat.check(checked, flat.ge(number, float(bound)), ValueError, f"below {bound}")
    return flat.Function((state, number), (state + checked,))


def test_a_program_without_checks_stays_as_it_is():
    function, checks = guarded(counter(3, checks=0), ((0, 0),), CPU)
    assert checks == [] and len(function.results) == 1


def test_donated_state_is_selected_where_that_is_cheap():
    function, checks = guarded(counter(3), ((0, 0),), CPU)
    assert len(checks) == 2 and not any(isinstance(op, Case) for op in function.ops)


def test_large_donated_state_is_kept_by_a_branch():
    function, _ = guarded(counter(LARGE), ((0, 0),), CPU)
    assert any(isinstance(op, Case) for op in function.ops)
    assert not any(isinstance(op, Check) for op in function.ops)
    assert len(function.results) == 2  # the verdict is the last


def test_a_gpu_never_branches():
    function, _ = guarded(counter(LARGE), ((0, 0),), CUDA)
    assert not any(isinstance(op, Case) for op in function.ops)


def test_a_check_as_large_as_the_state_does_not_branch():
    state = flat.Value(flat.TensorType(dtypes.float32, (2 * CHEAP,)))
    checked = flat.check(state, flat.reduce(flat.ge(state, 0.0), "and"), ValueError, "negative")
    function, _ = guarded(flat.Function((state,), (checked + 1.0,)), ((0, 0),), CPU)
    assert not any(isinstance(op, Case) for op in function.ops)


@pytest.mark.parametrize("size", [3, LARGE // 4 + 1], ids=["small", "large"])
@pytest.mark.parametrize("index", [4, -5])
def test_a_failed_check_is_an_error_and_state_stays(size, index):
    state = tn.zeros(size).eval()
    table = tn.arange(4.0).eval()

    @tn.compile
    def step(places):
        state.add_(table[places].sum())
        return state.sum()

    assert step(tn.tensor([1, 2])).item() == 3 * size
    with pytest.raises(IndexError, match="dimension 0 of size 4"):
        step(tn.tensor([1, index])).item()
    assert state[0].item() == 3
    assert step(tn.tensor([1])).item() == 4 * size


def test_the_first_check_that_fails_is_the_one_that_is_named():
    short, long = tn.arange(4.0).eval(), tn.arange(6.0).eval()

    @tn.compile
    def both(first, second):
        return short[first] + long[second]

    with pytest.raises(IndexError, match="of size 4"):
        both(tn.tensor(9), tn.tensor(11)).item()
    with pytest.raises(IndexError, match="of size 6"):
        both(tn.tensor(1), tn.tensor(11)).item()
    assert both(tn.tensor(1), tn.tensor(2)).item() == 3


UNREAD = """
import os
from tenfold.base.errors import IndexOutOfRange
from tenfold.runtime import checks

class Run:  # as on a GPU, where nobody waits for the verdict
    def __init__(self, error):
        self.failure = lambda results: error

checks._settle_later(Run(None), [])
checks._settle_later(Run(IndexOutOfRange("index 600 is out of range")), [])
child = os.fork()
if child:
    os.waitpid(child, 0)
"""


def test_a_failed_check_that_nobody_read_is_told_once_when_the_program_ends():
    done = subprocess.run([sys.executable, "-c", UNREAD], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stderr.count("index 600 is out of range") == 1
