"""`cond` and `while_loop`: one node each, decided when the program runs, through every transformation."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.runtime.executables import counting_compiles


def chosen(x):
    return tn.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


def power(x, n):
    return tn.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, tn.ones_like(x)))[1]


def test_the_branch_that_runs_is_chosen_by_the_data():
    positive, negative = tn.tensor([1.0, 2.0]), tn.tensor([-1.0, -2.0])
    np.testing.assert_allclose(chosen(positive).numpy(), np.sin([1, 2]), rtol=1e-6)
    np.testing.assert_allclose(chosen(negative).numpy(), np.cos([1, 2]), rtol=1e-6)


def test_both_choices_are_one_program():
    chosen(tn.tensor([1.0, 2.0, 3.0])).eval()
    with counting_compiles() as compiles:
        chosen(tn.tensor([-1.0, -2.0, -3.0])).eval()
    assert compiles == 0


def test_a_choice_is_recorded_and_not_made():
    text = chosen(tn.ones(2)).show(stage="trace")
    assert text.count("tenfold.cond") == 1 and "sin" not in text


def test_a_bool_decides_at_once():
    assert tn.cond(True, lambda x: x + 1, lambda x: x.no_such_thing, (tn.zeros(1),)).item() == 1
    assert tn.cond(False, lambda: tn.ones(1), lambda: tn.zeros(1)).item() == 0


def test_branches_return_containers_and_take_them():
    operands = ({"a": tn.ones(2), "b": [tn.zeros(2), tn.full((2,), 5.0)]}, 3)
    more = lambda d, k: {"sum": d["a"] + k, "rest": (d["b"][0], d["b"][1])}
    less = lambda d, k: {"sum": d["a"] - k, "rest": (d["b"][1], d["b"][0])}
    found = tn.cond(tn.tensor(False), more, less, operands)
    assert found["sum"].tolist() == [-2, -2]
    assert [each.tolist() for each in found["rest"]] == [[5, 5], [0, 0]]


def test_what_a_branch_reads_from_outside_is_an_input():
    scale = tn.tensor(2.0)
    step = lambda x: tn.cond(x.sum() > 0, lambda x: x * scale, lambda x: x / scale, (x,))
    before = step(tn.ones(1)).item()
    scale.fill_(8.0)
    assert (before, step(tn.ones(1)).item(), step(-tn.ones(1)).item()) == (2, 8, -0.125)


def test_a_write_is_done_by_the_branch_that_runs_alone():
    count, x = tn.zeros(()), tn.ones(2)

    def counting(x):
        count.add_(1)
        return x * 2

    for taken in (True, False, True):
        tn.cond(tn.tensor(taken), counting, lambda x: x * 3, (x,)).eval()
    assert count.item() == 2


def test_an_operand_may_be_written_in_place():
    x = tn.ones(2)
    tn.cond(tn.tensor(True), lambda x: x.mul_(3), lambda x: x + 0, (x,)).eval()
    assert x.tolist() == [3, 3]


def test_a_branch_draws_random_numbers():
    def drawn(taken):
        tn.manual_seed(3)
        first = tn.cond(tn.tensor(taken), lambda: tn.rand(2), lambda: tn.zeros(2))
        return first.tolist(), tn.rand(2).tolist()

    tn.manual_seed(3)
    one, two = tn.rand(2).tolist(), tn.rand(2).tolist()
    assert drawn(True) == (one, two)
    assert drawn(False) == ([0, 0], one)


def test_gradients_flow_through_the_branch_that_ran():
    class Either(tn.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = tn.nn.Linear(2, 1), tn.nn.Linear(2, 1)

        def forward(self, x):
            return tn.cond(x.sum() > 0, self.one, self.other, (x,))

    model = Either()
    model(tn.tensor([[1.0, 2.0]])).sum().backward()
    assert model.one.weight.grad.tolist() == [[1, 2]] and model.other.weight.grad.tolist() == [[0, 0]]


def test_second_derivatives_of_a_choice():
    x = tn.tensor([0.3, 0.4], requires_grad=True)
    (first,) = tn.autograd.grad(chosen(x).sum(), x, create_graph=True)
    (second,) = tn.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), -np.sin([0.3, 0.4]), rtol=1e-5)


def test_a_choice_for_each_element_of_a_batch():
    rows = tn.tensor([[1.0, 2.0], [-1.0, -2.0]])
    found = tn.vmap(chosen)(rows)
    np.testing.assert_allclose(found.numpy(), [np.sin([1, 2]), np.cos([1, 2])], rtol=1e-6)


def test_forward_derivatives_of_a_choice_and_a_loop():
    x, t = tn.tensor([0.5, 0.25]), tn.ones(2)
    _, sine = tn.func.jvp(chosen, (x,), (t,))
    _, cube = tn.func.jvp(lambda x: power(x, 3), (x,), (t,))
    np.testing.assert_allclose(sine.numpy(), np.cos([0.5, 0.25]), rtol=1e-6)
    np.testing.assert_allclose(cube.numpy(), 3 * np.array([0.5, 0.25]) ** 2, rtol=1e-6)


def test_a_compiled_function_decides_at_every_call():
    f = tn.compile(lambda x: chosen(x) + power(x, 2))
    for x in ([1.0, 2.0], [-1.0, -2.0]):
        expected = (np.sin(x) if sum(x) > 0 else np.cos(x)) + np.square(x)
        np.testing.assert_allclose(f(tn.tensor(x)).numpy(), expected, rtol=1e-6)


def test_a_compiled_function_writes_in_a_branch():
    count = tn.zeros(())

    def counting(x):
        count.add_(1)
        return x

    f = tn.compile(lambda x: tn.cond(x.sum() > 0, counting, lambda x: x, (x,)))
    for sign in (1, -1, 1):
        f(tn.ones(2) * sign)
    assert count.item() == 2


def test_a_loop_runs_as_often_as_the_data_says():
    grow = lambda limit: tn.while_loop(lambda x: x < limit, lambda x: x * 2, (tn.tensor(1.0),))
    assert [grow(tn.tensor(limit))[0].item() for limit in (0.5, 5.0, 100.0)] == [1, 8, 128]


def test_a_body_may_return_a_list_or_the_only_tensor_by_itself():
    counted = tn.while_loop(lambda i, x: i < 3, lambda i, x: [i + 1, x * 2], (0, tn.ones(2)))
    assert counted[0].item() == 3 and counted[1].tolist() == [8, 8]
    for body in (lambda x: x * 2, lambda x: [x * 2], lambda x: (x * 2,)):
        assert tn.while_loop(lambda x: x < 9, body, (tn.tensor(1.0),))[0].item() == 16


def test_a_number_is_carried_as_a_tensor():
    i, flag, x = tn.while_loop(
        lambda i, go, x: go, lambda i, go, x: (i + 1, i < 4, x + 0.5), (0, True, tn.zeros(()))
    )
    assert (i.item(), flag.item(), x.item()) == (5, False, 2.5)
    assert i.dtype is tn.int64 and flag.dtype is tn.bool


def test_a_loop_writes_to_memory_outside_in_every_round():
    total = tn.zeros(())

    def body(i):
        total.add_(i)
        return i + 1

    tn.while_loop(lambda i: i < 5, body, (tn.tensor(0),))[0].eval()
    assert total.item() == 10


def test_random_numbers_differ_from_round_to_round():
    tn.manual_seed(0)
    _, drawn = tn.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, tn.cat([x[1:], tn.rand(1)])), (0, tn.zeros(3))
    )
    assert len(set(drawn.tolist())) == 3


def test_the_gradient_of_a_counted_loop():
    w = tn.tensor([1.0, 2.0], requires_grad=True)
    for start in (0, tn.tensor(0), tn.zeros((), dtype=tn.int64)):
        _, y = tn.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * w), (start, w))
        (gradient,) = tn.autograd.grad(y.sum(), w)
        assert gradient.tolist() == [4, 32]


def test_a_loop_that_does_not_count_has_no_gradient():
    w = tn.tensor([1.0], requires_grad=True)
    (y,) = tn.while_loop(lambda x: x.sum() < 9, lambda x: x * 2 + w, (w,))
    y.sum().backward()
    with pytest.raises(tn.UnsupportedError, match=r"(?s)how often it runs.*lambda x: x \* 2 \+ w"):
        w.grad.eval()


def test_a_choice_in_a_loop_in_a_choice():
    step = lambda i, x: (i + 1, tn.cond(i % 2 == 0, lambda x: x + 1, lambda x: x * 3, (x,)))
    loop = lambda x: tn.while_loop(lambda i, x: i < 4, step, (0, x))[1]
    x = tn.tensor(1.0, requires_grad=True)
    y = tn.cond(x > 0, loop, lambda x: x, (x,))
    y.backward()
    assert (y.item(), x.grad.item()) == (21, 9)


def test_a_wrong_index_in_the_branch_that_runs_is_an_error():
    x, index = tn.ones(2), tn.tensor([5])
    look = lambda taken: tn.cond(tn.tensor(taken), lambda i: x[i], lambda i: x[:1], (index,))
    assert look(False).tolist() == [1]
    with pytest.raises(tn.IndexOutOfRange, match="out of range for dimension 0 of size 2"):
        look(True).eval()


def test_a_wrong_index_in_a_round_is_an_error():
    x = tn.ones(2)
    summed = lambda n: tn.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + x[i]), (0, tn.zeros(())))
    assert summed(2)[1].item() == 2
    with pytest.raises(tn.IndexOutOfRange, match="out of range"):
        summed(3)[1].eval()


def test_a_model_with_a_choice_becomes_stablehlo():
    text = str(tn.export(chosen, (tn.ones(2),), dialect="stablehlo"))
    assert "stablehlo.case" in text and "stablehlo.sine" in text and "stablehlo.cosine" in text


def test_a_model_with_a_choice_and_a_loop_becomes_torch_dialect():
    text = str(tn.export(lambda x: chosen(x) + power(x, 3), (tn.ones(2),), dialect="torch"))
    assert "torch.prim.If" in text and "torch.prim.Loop" in text and "torch.aten.sin" in text


ONES = tn.ones(2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tn.cond(ONES, abs, abs, (ONES,)), tn.ArgumentError, "tensor of one element, not f32"),
        (lambda: tn.cond("yes", abs, abs, (ONES,)), tn.ArgumentError, "not str"),
        (lambda: tn.cond(tn.tensor(True), 3, abs, (ONES,)), tn.ArgumentError, "true_fn must be a function"),
        (lambda: tn.cond(tn.tensor(True), abs, abs, ONES), tn.ArgumentError, "operands must be a tuple"),
        (
            lambda: tn.cond(tn.tensor(True), lambda x: x, lambda x: x.double(), (ONES,)),
            tn.ShapeError,
            r"true_fn returns f32\[2\] and false_fn f64\[2\]",
        ),
        (
            lambda: tn.cond(tn.tensor(True), lambda x: (x,), lambda x: x, (ONES,)),
            tn.ArgumentError,
            "different containers",
        ),
        (
            lambda: tn.cond(tn.tensor(True), lambda x: 1, lambda x: 1, (ONES,)),
            tn.ArgumentError,
            "returns a int",
        ),
        (
            lambda: tn.cond(tn.tensor(True), lambda x: x if x[0] > 0 else -x, abs, (ONES,)),
            tn.TraceError,
            "value of a traced tensor",
        ),
        (lambda: tn.while_loop(lambda x: x, abs, (ONES,)), tn.ArgumentError, "cond_fn must return one bool"),
        (lambda: tn.while_loop(lambda x: x.any(), abs, ()), tn.ArgumentError, "nothing is carried"),
        (
            lambda: tn.while_loop(lambda x: x.any(), lambda x: x.double(), (ONES,)),
            tn.ShapeError,
            r"carried as f32\[2\] at place 0 into f64\[2\]",
        ),
        (
            lambda: tn.while_loop(lambda x: x.any(), lambda x: (x, x), (ONES,)),
            tn.ArgumentError,
            "returns 2 tensors",
        ),
        (
            lambda: tn.while_loop(lambda x: x.any(), lambda x: x.add_(1), (ONES,)),
            tn.TraceError,
            "writes in place to what is carried",
        ),
        (
            lambda: tn.while_loop(lambda x: tn.rand(()) < 0.5, abs, (ONES,)),
            tn.TraceError,
            "cond_fn writes to a tensor, or draws",
        ),
    ],
)
def test_functions_that_cannot_be_parts_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_loop_sees_through_a_view_what_it_wrote():
    x = tn.ones(4)
    view = x[:2]

    def body(i):
        view.add_(1)
        x.mul_(2)
        return (i + 1,)

    tn.while_loop(lambda i: i < 2, body, (tn.tensor(0),))
    assert x.tolist() == [10.0, 10.0, 4.0, 4.0]


def test_a_branch_that_writes_what_it_reads_in_another_way_is_refused():
    x = tn.zeros(4)

    def written(p):
        p.add_(1)
        return x.sum()

    with pytest.raises(tn.TraceError, match="memory it also reads in another way"):
        tn.cond(tn.tensor(True), written, lambda p: p.sum(), (x[:2],))
    with pytest.raises(tn.TraceError, match="given as an argument and also reads from outside"):
        tn.compile(written)(x[:2])


def test_an_operand_that_is_given_twice_is_one():
    def first(p, q):
        p.add_(1)
        return q * 1

    x = tn.ones(1)
    assert tn.cond(tn.tensor(True), first, lambda p, q: p * 1, (x, x)).tolist() == [2.0]
    assert x.tolist() == [2.0]


def reads(i):
    return tn.tensor([1.0, 2.0, 3.0]).index_select(0, i.reshape(1)).reshape(())


@pytest.mark.parametrize("start", [0, 7])
def test_a_check_in_a_loops_condition_ends_the_loop_with_its_line(start):
    with pytest.raises(tn.IndexOutOfRange, match="out of range for dimension 0 of size 3") as raised:
        tn.while_loop(lambda i: reads(i) < 100, lambda i: i + 1, (tn.tensor(start),))[0].item()
    assert "index_select(0, i.reshape(1))" in str(raised.value)


def test_a_check_in_a_loops_condition_that_holds_changes_nothing():
    condition, body = lambda i, s: reads(i) < 3, lambda i, s: (i + 1, s + reads(i))
    rounds, total = tn.while_loop(condition, body, (tn.tensor(0), tn.tensor(0.0)))
    none, zero = tn.while_loop(condition, body, (tn.tensor(2), tn.tensor(0.0)))
    tn.eval(rounds, total, none, zero)
    assert [rounds.item(), total.item(), none.item(), zero.item()] == [2, 3, 2, 0]


def test_a_check_that_fails_in_a_loops_body_ends_the_loop():
    with pytest.raises(tn.IndexOutOfRange):  # a body whose condition would hold forever
        tn.while_loop(lambda i, s: s < 100, lambda i, s: (i + 1, reads(i)), (tn.tensor(0), tn.tensor(0.0)))[
            0
        ].item()


def test_checks_in_a_condition_inside_a_branch_are_found():
    def count(i):
        return tn.while_loop(
            lambda i: tn.cond(i > 0, lambda: reads(i) < 5, lambda: reads(i) < 3), lambda i: i + 1, (i,)
        )[0]

    choose = tn.compile(lambda x: tn.cond(x > 0, lambda: count(x), lambda: x * 1))
    assert choose(tn.tensor(-4)).item() == -4
    with pytest.raises(tn.IndexOutOfRange):
        choose(tn.tensor(1)).item()


def test_a_counter_is_read_where_gradients_flow_alone(monkeypatch):
    def count(x):
        return tn.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (tn.tensor(1), x))[1]

    x = tn.tensor(1.0, requires_grad=True)
    count(x).backward()
    assert x.grad.item() == 4
    read = []
    item = tn.Tensor.item
    monkeypatch.setattr(tn.Tensor, "item", lambda self: read.append(self) or item(self))
    plain = count(tn.tensor(1.0))
    assert not read
    assert plain.tolist() == 4
