"""State that goes with work into another thread."""

import contextvars

import pytest

import tenfold as tn
from tenfold.base.threads import in_another_thread


def seen():
    product = tn.ones(2, 2, device="cpu") @ tn.ones(2, 2, device="cpu")
    return tn.get_default_device().type, product.dtype, tn.is_grad_enabled()


def test_work_in_another_thread_finds_the_settings_of_this_one():
    with tn.device("meta"), tn.autocast("cpu"), tn.no_grad():
        assert in_another_thread(seen, "test") == seen() == ("meta", tn.bfloat16, False)
    assert in_another_thread(seen, "test") == ("cpu", tn.float32, True)


def test_settings_that_the_work_leaves_hold_here_too():
    before = tn.get_default_device()
    try:
        in_another_thread(lambda: tn.set_default_device("meta"), "test")
        assert tn.get_default_device().type == "meta"
    finally:
        tn.set_default_device(before)


def test_writes_of_this_thread_are_seen_in_another():
    x = tn.zeros(3)
    x.add_(1)
    assert in_another_thread(x.tolist, "test") == [1.0, 1.0, 1.0]


def test_work_in_another_thread_finds_context_variables():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(5)
    assert in_another_thread(variable.get, "test") == 5


def test_errors_of_the_work_are_raised_here():
    with pytest.raises(ZeroDivisionError):
        in_another_thread(lambda: 1 // 0, "test")
