"""Evaluation: what is compiled, what is computed again, what a run gives back."""

import gc
import sys
import threading

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.errors import IndexOutOfRange, TenfoldError
from tenfold.flat.ir import TensorType
from tenfold.runtime import evaluate, executables
from tenfold.runtime.executables import counting_compiles
from tenfold.trace.collect import collect


def test_second_evaluation_reuses_the_executable():
    step = lambda x: (x @ x).tanh().sum()
    step(tn.ones(4, 4).eval()).item()
    with counting_compiles() as compiles:
        step((tn.ones(4, 4) * 2).eval()).item()
        step(tn.full((4, 4), 3.0).eval()).item()
    assert compiles <= 2  # for the two tensors that are made, none for the step


def test_a_loop_compiles_once():
    x = tn.ones(3).eval()
    with counting_compiles() as compiles:
        for _ in range(5):
            x = (x * 1.5 - 0.25).eval()
    assert compiles <= 1
    expected = np.ones(3, np.float32)
    for _ in range(5):
        expected = expected * np.float32(1.5) - np.float32(0.25)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)


def test_programs_of_other_structure_are_not_confused():
    x, y = tn.tensor([1.0, 2.0]), tn.tensor([3.0, 5.0])
    assert (x - y).tolist() == [-2.0, -3.0]
    assert (y - x).tolist() == [2.0, 3.0]
    assert (x - x).tolist() == [0.0, 0.0]
    assert ((x + y) - x).tolist() == [3.0, 5.0]
    assert ((x + y) - y).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("values", [(1, 1.0, True), (0.0, -0.0), (float("nan"), 1.0), (2, 2.0)])
def test_numbers_that_compare_equal_are_different_programs(values):
    import torch

    for value in values:
        ours = tn.tensor([1, 2]) * value
        golden = torch.tensor([1, 2]) * value
        assert str(ours.dtype).split(".")[1] == str(golden.dtype).split(".")[1]
        np.testing.assert_array_equal(np.signbit(ours.numpy()), np.signbit(golden.numpy()))
        np.testing.assert_array_equal(ours.numpy(), golden.numpy())


def test_values_that_the_program_holds_are_computed_once():
    x = tn.ones(4).eval()
    held = (x + 1).exp()
    total = held.sum()
    total.item()
    assert held.current().buffer is not None


@pytest.mark.usefixtures("on_xla")
def test_values_that_nobody_holds_are_not_given_back():
    outputs = []
    x = tn.ones(4).eval()
    with executables.observing(lambda program, device: outputs.append(len(program.outputs))):
        ((x + 2).exp() * 7).sum().item()
    assert outputs == [1]


@pytest.mark.usefixtures("collects_quickly")
def test_an_evaluated_value_lets_go_of_its_program():
    x = (tn.ones(4) + 1).exp()
    value = x.current()
    node = value.node
    assert node is not None
    x.eval()
    assert value.node is None
    before = sys.getrefcount(node)
    gc.collect()
    assert sys.getrefcount(node) == before == 2


def test_a_write_is_computed_with_the_next_evaluation():
    x = tn.zeros(3).eval()
    other = tn.ones(2)
    x.add_(1)
    assert x.current().buffer is None
    other.eval()
    assert x.current().buffer is not None
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_several_tensors_are_one_program():
    x = tn.ones(5).eval()
    results = [(x + i).sin() for i in range(6)]
    with counting_compiles() as compiles:
        tn.eval(*results)
    assert compiles <= 1
    assert all(each.current().buffer is not None for each in results)


def test_threads_evaluate_side_by_side():
    results: dict[int, float] = {}

    def work(i: int) -> None:
        x = tn.full((8, 8), float(i))
        results[i] = ((x @ x) + i).sum().item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == {i: 64.0 * (8 * i * i + i) for i in range(8)}


def test_a_failed_check_names_the_users_line_and_poisons_nothing_else():
    x = tn.arange(5.0)
    bad = x[tn.tensor([1, 7])]
    with pytest.raises(IndexOutOfRange) as caught:
        bad.tolist()
    assert "test_evaluate.py" in str(caught.value)
    assert "bad = x[tn.tensor([1, 7])]" in str(caught.value)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_failed_write_is_heard_of_by_those_who_read_it():
    x, other = tn.zeros(3), tn.ones(2)
    x[tn.tensor([5])] = 1.0
    assert (other + 1).tolist() == [2.0, 2.0]
    with pytest.raises(IndexOutOfRange):
        x.tolist()
    assert (other + 2).tolist() == [3.0, 3.0]
    assert x.tolist() == [0.0, 0.0, 0.0]  # as it was: an op that raises writes nothing


def test_a_tensor_that_was_written_often_is_as_it_was_before_the_op_that_failed():
    x, table = tn.ones(3), tn.ones(4, 3)
    x.mul_(2)
    for row in (1, 9, 2):
        x.add_(table[tn.tensor([row])].sum())
    x.mul_(2)
    with pytest.raises(IndexOutOfRange):
        x.sum().item()
    assert x.tolist() == [5.0, 5.0, 5.0]
    assert x.add_(1).tolist() == [6.0, 6.0, 6.0]


def test_out_of_memory_is_an_error_of_ours():
    with pytest.raises((MemoryError, TenfoldError)) as caught:
        (tn.ones(1 << 44) + 1).eval()
    assert isinstance(caught.value, tn.OutOfMemory), caught.value
    assert "test_evaluate.py" in str(caught.value)
    assert tn.ones(2).tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("on_xla")
def test_observers_hear_of_new_programs_only():
    seen = []
    x = tn.ones(7).eval()
    with executables.observing(lambda program, device: seen.append(program)):
        (x * 3.25 + 7).eval()
        (x * 3.25 + 7).eval()
    assert len(seen) == 1


def test_threads_that_read_one_lazy_tensor_agree():
    makers = [
        (lambda: tn.ones(5) * 2, [2.0] * 5),
        (lambda: tn.ones(3).sum(), 3.0),
        (lambda: tn.arange(5, dtype=tn.int32) * 2, [0, 2, 4, 6, 8]),
    ]
    wrong = []
    for make, expected in makers:
        for _ in range(10):
            lazy = make()

            def read(lazy=lazy, expected=expected):
                if (found := lazy.tolist()) != expected:
                    wrong.append(found)

            threads = [threading.Thread(target=read) for _ in range(6)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
    assert not wrong


def test_leaves_of_other_types_are_other_programs():
    for value in (tn.tensor([1.0, 2.0]), tn.tensor([3, 4, 5]), tn.tensor(True)):
        program, _ = collect([value.current()])
        loaded, buffers, _ = evaluate._prepared(program, value.device, ())
        assert loaded.executable(buffers)[0].aval.shape == tuple(value.shape)


@pytest.mark.parametrize(
    "make", [lambda: tn.ones(2**62, 4), lambda: tn.ones(2).expand(2**62, 2), lambda: tn.arange(1e20)]
)
def test_a_shape_that_no_memory_holds_is_refused(make):
    with pytest.raises(tn.ShapeError, match="more elements than can be addressed"):
        make().sum().item()


@pytest.mark.usefixtures("on_xla")
def test_the_least_recently_used_executables_go(monkeypatch):
    monkeypatch.setattr(executables, "MAX_EXECUTABLES", 3)
    x = tn.ones(3).eval()
    often = lambda: (x * 5 - 1).exp().tolist()
    often()
    for i in range(4):
        (tn.ones(i + 2).eval() * x.sum()).eval()
        often()
        (x + tn.ones(i + 2, 1).eval() * 7).eval()  # a number that may come late
    assert len(executables._executables) <= 3 and 0 < len(executables._variants) <= 3
    with counting_compiles() as compiles:
        often()
    assert compiles == 0


@pytest.mark.usefixtures("on_xla")
def test_executables_go_before_memory_mappings_run_out(monkeypatch):
    x = tn.ones(3).eval()
    x.exp().eval()
    monkeypatch.setattr(executables, "MAX_MAPPINGS", 1)
    monkeypatch.setattr(executables, "_compiles", 7)
    (x + 0.125).tanh().eval()  # the eighth compile counts the mappings
    assert len(executables._executables) == 1


@pytest.mark.parametrize(("device", "pays"), [("cpu", False), ("cuda", True)])
def test_small_memory_is_reused_where_programs_run_as_graphs(device, pays):
    small, large = TensorType(tn.float32, (3,)), TensorType(tn.float32, (4096,))
    assert evaluate.donatable(small, small, tn.device(device)) is pays
    assert evaluate.donatable(large, large, tn.device(device))
    assert not evaluate.donatable(small, large, tn.device(device))
