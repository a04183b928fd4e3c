"""Training steps under `compile` and recorded lazily: the same losses as PyTorch, one executable, memory
handed over from step to step, and nothing lost when a step fails."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime import executables
from tenfold.runtime.background import background

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(16, 5)).astype(np.float32)
Y = GENERATOR.normal(size=(16, 3)).astype(np.float32)
W = GENERATOR.normal(size=(5, 3)).astype(np.float32)


class Problem:
    """Least squares by gradient descent with momentum, written for either package."""

    def __init__(self, module, repeats=1):
        self.module = module
        self.w = module.tensor(np.repeat(W, repeats, 1), requires_grad=True)
        self.momentum = module.zeros(5, 3 * repeats)
        self.x, self.y = module.tensor(X), module.tensor(np.repeat(Y, repeats, 1))

    def step(self, x, y):
        self.w.grad = None
        loss = ((x @ self.w - y).tanh() ** 2).mean()
        loss.backward()
        with self.module.no_grad():
            self.momentum.mul_(0.9).add_(self.w.grad)
            self.w.sub_(self.momentum * 0.1)
        return loss

    def losses(self, step, count=20):
        return [step(self.x, self.y).item() for _ in range(count)]


def test_lazy_and_compiled_training_equal_pytorch():
    golden = Problem(torch)
    expected = golden.losses(golden.step)
    lazy, compiled = Problem(tn), Problem(tn)
    np.testing.assert_allclose(lazy.losses(lazy.step), expected, rtol=1e-5)
    np.testing.assert_allclose(compiled.losses(tn.compile(compiled.step)), expected, rtol=1e-5)
    np.testing.assert_allclose(compiled.w.grad.numpy(), golden.w.grad.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(lazy.w.grad.numpy(), golden.w.grad.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("wrap", [lambda step: step, tn.compile], ids=["lazy", "compiled"])
def test_a_step_is_compiled_once(wrap):
    problem = Problem(tn)
    tn.eval(problem.momentum, problem.w, problem.x, problem.y)
    step = wrap(problem.step)
    problem.losses(step, 2)
    with executables.counting_compiles() as compiles:
        problem.losses(step, 5)
    assert compiles == 0


@pytest.mark.parametrize("tier", ["numpy", "xla"])
@pytest.mark.parametrize("wrap", [lambda step: step, tn.compile], ids=["lazy", "compiled"])
def test_a_step_hands_its_memory_to_the_next(wrap, tier, choose_tier):
    choose_tier(tier)
    problem = Problem(tn, repeats=10_000)
    step = wrap(problem.step)
    problem.losses(step, 3)
    before = problem.w.data_ptr()
    problem.losses(step, 3)
    assert problem.w.data_ptr() == before


@pytest.mark.usefixtures("collects_quickly")
@pytest.mark.parametrize("wrap", [lambda step: step, tn.compile], ids=["lazy", "compiled"])
def test_a_step_leaves_nothing_to_the_garbage_collector(wrap):
    problem = Problem(tn, repeats=100)
    step = wrap(problem.step)
    problem.losses(step, 3)
    background.wait()
    gc.collect()
    gc.disable()
    try:
        problem.losses(step, 5)
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("repeats", [1, 10_000], ids=["small", "large"])
@pytest.mark.parametrize("wrap", [lambda step: step, tn.compile], ids=["lazy", "compiled"])
def test_what_others_hold_of_the_state_stays(wrap, repeats):
    problem = Problem(tn, repeats)
    step = wrap(problem.step)
    problem.losses(step, 2)
    seen = problem.w.detach().clone()
    array = problem.w.detach().numpy()
    values = array.copy()
    pending = problem.w.detach() * 2  # not computed yet
    problem.losses(step, 2)
    np.testing.assert_array_equal(seen.numpy(), values)
    np.testing.assert_array_equal(array, values)
    np.testing.assert_array_equal(pending.numpy(), values * 2)
    assert not np.array_equal(problem.w.detach().numpy(), values)


@pytest.mark.parametrize("width", [3, 100_000], ids=["small", "large"])
@pytest.mark.parametrize("wrap", [lambda step: step, tn.compile], ids=["lazy", "compiled"])
def test_a_step_that_fails_loses_nothing(wrap, width):
    table = tn.ones(4, width, requires_grad=True)

    def step(places):
        table.grad = None
        loss = table.index_select(0, places).sum()
        loss.backward()
        with tn.no_grad():
            table.sub_(table.grad)
        return loss

    run = wrap(step)
    assert run(tn.tensor([0, 1])).item() == 2 * width
    with pytest.raises(IndexError):
        run(tn.tensor([0, 7])).item()
    np.testing.assert_array_equal(table.detach().numpy()[:, 0], [0, 0, 1, 1])
    assert run(tn.tensor([2, 3])).item() == 2 * width


@pytest.mark.parametrize("width", [3, 100_000], ids=["small", "large"])
def test_a_step_of_several_checks_raises_the_first_that_fails_and_loses_nothing(width):
    table, seen = tn.ones(4, width), tn.zeros(4, width)

    @tn.compile
    def step(places, others):
        first = table.index_select(0, places)
        second = first.index_select(0, others)  # whose own check needs what the first one checked
        table.add_(second.sum())
        seen.copy_(table)
        return second[0, 0] > 0, second.to(tn.complex64)[0, 0], table.argmax()

    positive, number, place = step(tn.tensor([0, 1]), tn.tensor([1]))
    assert positive.item() and number.item() == 1 and place.item() == 0
    held = table.numpy().copy()
    for places, others in ([[0, 9], [1]], [[0, 1], [2]], [[0, 9], [2]]):
        with pytest.raises(IndexError, match="index_select") as raised:
            step(tn.tensor(places), tn.tensor(others))[0].item()
        line = "first = " if 9 in places else "second = "
        assert line in str(raised.value)
        np.testing.assert_array_equal(table.numpy(), held)
        np.testing.assert_array_equal(seen.numpy(), held)
    assert step(tn.tensor([0, 1]), tn.tensor([1]))[0].item()


def test_a_gradient_that_a_compiled_step_clears_lends_its_memory_to_the_next():
    problem = Problem(tn, repeats=1000)
    step = tn.compile(problem.step)
    problem.losses(step, 2)
    before = problem.w.grad.data_ptr()
    problem.losses(step, 1)
    assert problem.w.grad.data_ptr() == before


@pytest.mark.parametrize("hold", [lambda each: each, lambda each: each[1], lambda each: each.detach()])
def test_a_gradient_that_somebody_holds_stays(hold):
    golden, problem = Problem(torch, repeats=1000), Problem(tn, repeats=1000)
    step = tn.compile(problem.step)
    kept = []
    for taking, each in ((golden.step, golden), (step, problem)):
        each.losses(taking, 2)
        kept.append(hold(each.w.grad))
        each.losses(taking, 2)
    np.testing.assert_allclose(kept[1].numpy(), kept[0].numpy(), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(problem.w.grad.numpy(), golden.w.grad.numpy(), rtol=1e-4, atol=1e-7)


def test_gradients_accumulate_over_compiled_calls():
    w = tn.tensor(W, requires_grad=True)
    compiled = tn.compile(lambda x: (x @ w).sum().backward())
    x = tn.tensor(X)
    for count in (1, 2, 3):
        compiled(x)
        expected = np.repeat(X.sum(0)[:, None], 3, 1) * count
        np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-5)


def test_gradients_read_one_by_one_are_computed_together():
    w = [tn.tensor(W, requires_grad=True) for _ in range(3)]
    loss = sum(((tn.tensor(X) @ each).tanh() ** 2).sum() for each in w)
    loss.backward()
    w[0].grad.numpy()
    with executables.counting_compiles() as compiles:
        for each in w[1:]:
            each.grad.numpy()
    assert compiles == 0


@pytest.mark.parametrize("retain", [False, True])
def test_what_a_gradient_may_still_need_is_not_given_away(retain):
    table = tn.ones(4, 10_000, requires_grad=True)
    tn.eval(table)
    loss = (table + 1).sum()
    other = (table * 2).sum()
    if retain:
        other.backward(retain_graph=True)
    with tn.no_grad():
        table.sub_(1)
    other.item()
    table.numpy(force=True)
    loss.backward()
    assert table.grad[0, 0].item() == (3 if retain else 1)


def test_a_loop_that_reads_nothing_is_not_one_program():
    problem = Problem(tn)
    step = problem.step
    step(problem.x, problem.y).item()
    sizes = []
    with executables.observing(lambda program, device: sizes.append(len(program.nodes))):
        for _ in range(100):
            loss = step(problem.x, problem.y)
        loss.item()
    assert len(sizes) <= 6 and max(sizes) < 600


def test_an_optimizer_s_step_runs_what_was_recorded():
    model = tn.nn.Linear(3, 2)
    optimizer = tn.optim.SGD(model.parameters(), lr=0.1)
    sizes = []
    with executables.observing(lambda program, device: sizes.append(len(program.nodes))):
        for _ in range(20):
            optimizer.zero_grad()
            model(tn.ones(1, 3)).sum().backward()
            optimizer.step()
    assert len(sizes) == 1


def test_writes_are_not_repeated_after_a_failed_check():
    x, table, seen = tn.ones(8192).eval(), tn.arange(4.0), []
    for k in range(6):
        x.add_(float(k + 1))
        with contextlib.suppress(IndexError):
            (table.index_select(0, tn.tensor([1 if k < 4 else 9])) + x[:1]).tolist()
        seen.append(x[0].item())
    assert seen == [2, 4, 7, 11, 16, 22]


def test_a_parameter_may_be_read_while_another_thread_trains():
    import threading

    problem = Problem(tn)
    step = tn.compile(problem.step)
    problem.losses(step, 3)
    failures, done = [], threading.Event()

    def look():
        while not done.is_set():
            try:
                problem.w.detach().numpy()
            except Exception as error:
                failures.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    problem.losses(step, 200)
    done.set()
    thread.join()
    assert not failures


def trained(change, steps=3):
    """A compiled step of a small model, and what `change` does to it between steps, beside PyTorch."""
    found = []
    for m in (tn, torch):
        model = m.nn.Linear(5, 3)
        model.load_state_dict({"weight": m.tensor(W.T.copy()), "bias": m.zeros(3)})
        optimizer = m.optim.SGD(model.parameters(), lr=0.1)

        def step(x, y, m=m, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = tn.compile(step) if m is tn else step
        x, y = m.tensor(X), m.tensor(Y)
        losses = [run(x, y).item() for _ in range(steps)]
        change(m, model, optimizer)
        losses += [run(x, y).item() for _ in range(steps)]
        found.append(losses)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


def test_a_compiled_step_follows_a_new_parameter():
    def change(m, model, optimizer):
        model.bias = m.nn.Parameter(m.ones(3))

    trained(change)


def test_a_compiled_step_follows_a_frozen_parameter():
    trained(lambda m, model, optimizer: model.bias.requires_grad_(False))


def test_a_compiled_step_follows_the_options_of_its_optimizer():
    def change(m, model, optimizer):
        optimizer.param_groups[0]["lr"] = 0.5
        optimizer.param_groups[0]["maximize"] = True

    trained(change)


def test_a_compiled_step_follows_a_learning_rate_that_becomes_a_tensor():
    def change(m, model, optimizer):
        optimizer.param_groups[0]["lr"] = m.tensor(0.5)

    trained(change)


def test_a_loss_that_was_differentiated_inside_a_compiled_step_cannot_be_again():
    def program(library, wrap):
        weight = library.ones(3, requires_grad=True)

        @wrap
        def step(x):
            loss = (weight * x).sum()
            loss.backward()
            return loss, loss.detach()

        seen = []
        for _ in range(2):
            loss, apart = step(library.ones(3))
            seen += [loss.requires_grad, loss.is_leaf, apart.requires_grad, weight.grad.tolist()]
            for again in (loss, loss * 2 + weight.sum()):
                with pytest.raises(RuntimeError):
                    again.backward()
        return seen

    assert program(tn, tn.compile) == program(torch, lambda function: function)
