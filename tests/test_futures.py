"""`futures`: values that are set later."""

import threading

import pytest
import torch

import tenfold as tn


@pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "pytorch"])
def test_callbacks_follow_a_value(t):
    first, second = t.futures.Future(), t.futures.Future()
    following = first.then(lambda future: future.value() + second.wait())
    both = t.futures.collect_all([first, second])
    assert not both.done()
    second.set_result(2)
    threading.Timer(0.01, first.set_result, [t.ones(2)]).start()
    assert following.wait().tolist() == [3, 3]
    assert [each.done() for each in both.wait()] == [True, True]
    assert t.futures.wait_all([second, second]) == [2, 2]


@pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "pytorch"])
def test_an_error_comes_to_whoever_waits(t):
    future = t.futures.Future()
    with pytest.raises(RuntimeError):
        future.value()
    future.set_exception(ValueError("not today"))
    with pytest.raises(ValueError, match="not today"):
        future.wait()
    with pytest.raises(RuntimeError):
        future.set_result(1)


@pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "pytorch"])
@pytest.mark.parametrize("name", ["wait_all", "collect_all"])
def test_what_is_no_future_is_refused(t, name):
    with pytest.raises(TypeError):
        getattr(t.futures, name)([3])
