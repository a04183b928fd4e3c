"""Calls recorded on stand-ins for their tensors."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import pytest

import tenfold as tn
from tenfold.base import log
from tenfold.base.watched_sizes import Asked
from tenfold.runtime.calls import record_call, shares_memory
from tenfold.trace.context import context


def test_results_of_a_repeated_argument_are_those_of_one_tensor():
    row = tn.ones(1, 2, 1, 4)
    cache = tn.zeros(1, 2, 8, 4)
    step = tn.compile(lambda a, b, row: a.index_copy_(2, tn.tensor([1]), row).sum() + b.sum())
    assert step(cache, cache, row).item() == 2 * row.numel()
    assert step(cache, cache, row * 3).item() == 6 * row.numel()


def test_a_tensor_from_outside_that_is_an_argument_too_is_not_written():
    p = tn.ones(3)
    with pytest.raises(tn.TraceError, match="given as an argument"):
        tn.compile(lambda x: (p.mul_(2), x.sum())[1])(p)


class Seen:
    """What a function sees when it is recorded, where recording does not put it back."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[Any] = SimpleQueue()

    def note(self, *things: Any) -> None:
        for thing in things:
            self.queue.put(thing)

    def noted(self) -> list[Any]:
        return [self.queue.get_nowait() for _ in range(self.queue.qsize())]


def recorded(function, *args, **options):
    return record_call(function, args, {}, tn.Tensor, **options)


def test_a_call_tells_its_tensors_in_their_order_and_what_stands_for_them():
    first, second = tn.ones(2), tn.ones(3)
    seen = Seen()
    function = lambda pair, by: seen.note(pair["a"], *pair["b"]) or pair["b"][0] * by
    call = recorded(function, {"a": first, "b": [second]}, 2)
    assert [each is one for each, one in zip(call.given, (first, second), strict=True)] == [True, True]
    assert [each.shape for each in seen.noted()] == [(2,), (3,)]
    assert [leaf.buffer for leaf in call.recording.trace.leaves] == [None]
    assert call.recording.inputs == [1]


def test_a_tensor_that_is_given_twice_has_one_stand_in():
    x = tn.ones(2)
    same = Seen()
    call = recorded(lambda a, b, c: same.note(a is b, a is c) or a + b + c, x, x, tn.ones(2))
    assert same.noted() == [True, False]
    assert call.given[0] is call.given[1] is x


def test_stand_ins_may_have_other_shapes():
    call = recorded(lambda x, y: y.sum() + x, tn.ones(2), tn.ones(5), shapes={0: (7,)})
    assert call.recording.inputs == [1, 0]
    assert [leaf.type.shape for leaf in call.recording.trace.leaves] == [(5,), (7,)]


def test_stand_ins_require_gradients_as_their_arguments_do():
    leaf = tn.ones(2, requires_grad=True)
    leaf.grad = tn.full((2,), 3.0)
    computed = leaf * 2
    plain = tn.ones(2)
    plain.grad = tn.full((2,), 5.0)
    seen = Seen()

    def function(*tensors):
        seen.note(*[(each.requires_grad, each.is_leaf, each.grad is not None) for each in tensors])
        return tensors[0] * 1

    recorded(function, leaf, computed, plain)
    assert seen.noted() == [(True, True, True), (True, False, False), (False, True, True)]


def test_what_is_asked_of_sizes_is_collected_for_one_recording_alone():
    asked: list[Asked] = []
    recorded(lambda x: x * (2 if x.shape[0] > 3 else 1), tn.ones(2), asked=asked)
    assert [(question.what, question.number, question.other, question.answer) for question in asked] == [
        ("gt", 2, 3, False)
    ]
    assert context.asked is None
    with pytest.raises(ZeroDivisionError):
        recorded(lambda x: x.shape[0] / 0, tn.ones(2), asked=asked)
    assert context.asked is None


def test_a_recording_is_logged_with_its_name_and_its_ops(monkeypatch):
    lines = []
    monkeypatch.setattr(log, "topics", {"trace"})
    monkeypatch.setattr(log, "write", lambda topic, text, seconds: lines.append((topic, text, seconds >= 0)))

    def twice_of(x):
        return x.sin().cos()

    recorded(twice_of, tn.ones(2))
    assert lines == [("trace", f"recorded {twice_of.__qualname__}: 2 nodes", True)]


def test_writes_to_memory_that_arguments_share_are_refused():
    x = tn.ones(4)
    for views in ((x[:2], x[2:]), (x, x[:2])):
        with pytest.raises(tn.TraceError, match="shares memory with another"):
            recorded(lambda a, b: a.add_(1), *views)
        assert recorded(lambda a, b: a + b.sum(), *views).recording.argument_writes == []
    whole = x[:]
    assert recorded(lambda a, b: a.add_(1), whole, whole).recording.argument_writes == [0]
    assert recorded(lambda a, b: a.add_(1), tn.ones(2)[:], tn.ones(2)[:]).recording.argument_writes == [0]


def test_an_argument_that_is_written_may_not_be_read_from_outside_too():
    p, other = tn.ones(3), tn.ones(3)
    with pytest.raises(tn.TraceError, match="given as an argument and also reads from outside"):
        recorded(lambda x: x.mul_(2) + p, p)
    with pytest.raises(tn.TraceError, match="given as an argument and also reads from outside"):
        recorded(lambda x, y: y.mul_(2) + p, p, other)
    assert recorded(lambda x: x * 2 + p, p).recording.argument_writes == []
    assert recorded(lambda x: x.mul_(2) + other, p).recording.argument_writes == [0]


def test_views_of_one_storage_share_memory():
    x, y = tn.ones(4), tn.ones(4)
    views = x[:2], x[2:], y[:2]
    assert shares_memory(views[:2]) and shares_memory([y, *views])
    for apart in (views[1:], [views[0], views[0]], [y, y]):
        assert not shares_memory(apart)
