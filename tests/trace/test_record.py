"""The one recorder: what it notes of a function under each policy, and that tensors stay as they were."""

from __future__ import annotations

import threading

import pytest

import tenfold as tn
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor
from tenfold.trace.context import context, outside
from tenfold.trace.graph import Value
from tenfold.trace.record import Policy, record

COMPILE = Policy("compile", evaluate=evaluate.evaluate)
TRANSFORM = Policy("vmap", asks=True, nested=True, differentiates=True, through_memory=True)


def stand_in(*shape: int) -> Tensor:
    value = tn.ones(*shape).current()
    return Tensor(Value(value.type, value.device))


def names(recording) -> list[str]:
    return [node.callee.name for node in recording.trace.nodes]


@pytest.mark.parametrize("policy", [COMPILE, TRANSFORM], ids=["compile", "transform"])
def test_arguments_and_tensors_from_outside_are_its_inputs(policy):
    other = tn.full((3,), 2.0).eval()
    recording = record(lambda tensors: (tensors[0] + other).sin(), [stand_in(3)], policy)
    assert names(recording) == ["add", "sin"]
    assert recording.inputs[0] == 0
    outer = recording.inputs[1]
    assert outer is other if policy is COMPILE else outer is other.current()


@pytest.mark.parametrize("policy", [COMPILE, TRANSFORM], ids=["compile", "transform"])
def test_writes_are_results_and_memory_is_as_it_was_afterwards(policy):
    total, given = tn.zeros(3).eval(), stand_in(3)

    def function(tensors):
        total.add_(tensors[0])
        tensors[0].mul_(2)
        return total * 1

    recording = record(function, [given], policy)
    assert total.tolist() == [0, 0, 0]
    assert len(recording.returned) == 1 and len(recording.trace.outputs) == 3
    (root,) = recording.outside_writes
    assert root is total.memory and recording.argument_writes == [0]


def test_an_error_inside_leaves_everything_as_it_was():
    total = tn.zeros(3).eval()

    def function(tensors):
        total.add_(1)
        raise KeyError("inside")

    with pytest.raises(KeyError):
        record(function, [stand_in(3)], COMPILE)
    assert context.recorder is None and total.tolist() == [0, 0, 0]


def test_gradients_that_are_made_and_cleared_are_told_and_put_back():
    w = tn.ones(3).requires_grad_()
    before = w.grad = tn.full((3,), 7.0)

    def function(tensors):
        w.grad = None
        (w * tensors[0]).sum().backward()
        return w.grad

    recording = record(function, [stand_in(3)], COMPILE)
    assert w.grad is before
    assert recording.gradients.made == [w.collector]
    assert recording.recorder.cleared == {w.collector}


def test_a_value_may_be_asked_for_only_where_it_does_not_depend_on_arguments():
    known = tn.full((), 3.0)

    def asks(of):
        return lambda tensors: tensors[0] * of(tensors).item()

    assert names(record(asks(lambda tensors: known * 2), [stand_in(3)], TRANSFORM))[-1] == "mul"
    with pytest.raises(tn.TraceError, match="records f once, without data"):
        record(asks(lambda tensors: tensors[0].sum()), [stand_in(3)], TRANSFORM)
    with pytest.raises(tn.TraceError, match="records f once, without data"):
        record(asks(lambda tensors: known * 2), [stand_in(3)], COMPILE)


def test_a_listener_hears_of_attributes_also_from_a_recording_inside():
    heard = []

    class Listener:
        def guard(self, container, key, contents=False):
            heard.append(key)

        def watch(self, container, apart=(), of_object=False):
            pass

    def function(tensors):
        record(lambda inner: (context.recorder.guard({"depth": 1}, "depth"), inner[0])[1], tensors, TRANSFORM)
        return tensors[0] * 2

    record(function, [stand_in(3)], Policy("compile", evaluate=evaluate.evaluate, listener=Listener()))
    assert heard == ["depth"]


def test_other_threads_are_not_part_of_a_recording():
    def function(tensors):
        found = []
        thread = threading.Thread(target=lambda: found.append((context.recorder, (tn.ones(2) + 1).tolist())))
        thread.start()
        thread.join()
        assert found == [(None, [2.0, 2.0])]
        return tensors[0] + 1

    assert names(record(function, [stand_in(2)], COMPILE)) == ["add"]


def test_what_is_done_outside_is_not_part_of_a_recording():
    def function(tensors):
        with outside():
            assert tn.ones(2).cos().sum().item() == pytest.approx(1.0806046)
        return tensors[0] + 1

    assert names(record(function, [stand_in(2)], COMPILE)) == ["add"]


def test_a_function_that_neither_returns_nor_changes_a_tensor_is_refused():
    with pytest.raises(tn.TraceError, match="the function given to vmap neither returns nor changes"):
        record(lambda tensors: None, [stand_in(2)], TRANSFORM)
