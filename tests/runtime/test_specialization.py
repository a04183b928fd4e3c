"""A compiled function that is ready to run: what it depends on, and what becomes of memory and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime.guards import Owners
from tenfold.runtime.specialization import OTHER, Specialization

GENERATOR = np.random.default_rng(0)
X, W = GENERATOR.normal(size=(8, 5)).astype(np.float32), GENERATOR.normal(size=(5, 3)).astype(np.float32)


def only(compiled: Any) -> Specialization:
    """The program of a compiled function that has one."""
    ((found,),) = compiled.programs._recorded.values()
    return found


def test_a_failed_check_leaves_gradients_as_they_were():
    embedding, linear = tn.nn.Embedding(3, 2), tn.nn.Linear(2, 2)
    optimizer = tn.optim.Adam([*embedding.parameters(), *linear.parameters()])

    @tn.compile
    def step(i):
        optimizer.zero_grad()
        loss = linear(embedding(i)).sum()
        loss.backward()
        optimizer.step()
        return loss

    step(tn.tensor([1]))
    before = linear.bias.grad.tolist()
    with tn.no_grad():
        linear.bias.mul_(1.0)
    with pytest.raises(tn.IndexOutOfRange):
        step(tn.tensor([7]))
    assert linear.bias.grad.tolist() == before == [1.0, 1.0]


def test_a_compiled_module_goes_on_after_its_parameters_got_other_memory() -> None:
    layer = tn.nn.Linear(2, 2)
    layer.state_dict()
    optimizer = tn.optim.SGD(layer.parameters(), lr=0.5)

    @tn.compile
    def step(x):
        optimizer.zero_grad()
        loss = layer(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    compiled, x = tn.compile(layer), tn.ones(1, 2)
    compiled(x)
    first = step(x).item()
    layer.double()
    assert compiled(x.double()).dtype is tn.float64
    layer.float()
    assert step(x).item() < first


def test_gradients_flow_through_a_compiled_function():
    results = []
    for m in (tn, torch):
        w, x = m.tensor(W, requires_grad=True), m.tensor(X, requires_grad=True)
        model = lambda x, w=w: (x @ w).tanh()
        if m is tn:
            model = tn.compile(model)
        for _ in range(2):
            (model(x) ** 2).sum().backward()
        results.append([w.grad.numpy(), x.grad.numpy()])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_an_argument_gets_its_gradient():
    x = tn.tensor(X, requires_grad=True)
    tn.compile(lambda x: (x * x).sum().backward())(x)
    np.testing.assert_allclose(x.grad.numpy(), 2 * X, rtol=1e-6)


def test_without_gradients_a_compiled_function_gives_none():
    w = tn.tensor(W, requires_grad=True)
    model = tn.compile(lambda x: x @ w)
    x = tn.tensor(X)
    with tn.no_grad():
        assert not model(x).requires_grad
    assert model(x).requires_grad


# What a call depends on


class Scaled(tn.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.by, self.state = 2.0, tn.ones(3)

    def forward(self, x):
        return x * self.by + self.state


def test_it_tells_what_it_depends_on_and_why_it_no_longer_fits():
    model = Scaled()
    compiled = tn.compile(lambda x: model(x))
    x = tn.ones(3)
    compiled(x)
    program = only(compiled)
    given = [x]
    assert program.fits(program._with_found(given)) is not None
    assert any("by" in line and "2.0" in line for line in program.described(Owners([model])))
    assert any(container is model.__dict__ or container is model for container in program.containers())
    model.by = 3.0
    assert program.run(given, tn.Tensor) is OTHER
    assert "by" in program.broken([x]) and "3.0" in program.broken([x])
    model.by = 2.0
    assert program.run(given, tn.Tensor).tolist() == [3, 3, 3]
    del model.state
    assert program.run(given, tn.Tensor) is OTHER
    assert "`state` of a Scaled is bound to other tensors than it was" in program.broken([x])


def test_a_gradient_that_comes_or_goes_is_a_reason():
    w = tn.ones(3, requires_grad=True)

    @tn.compile
    def step(x):
        (w * x).sum().backward()
        return w.grad.sum()

    x = tn.ones(3)
    assert step(x).item() == 3
    assert step(x).item() == 6
    programs = [each for several in step.programs._recorded.values() for each in several]
    fitting = [each for each in programs if each.fits([x]) is not None]
    assert len(programs) == 2 and len(fitting) == 1
    (other,) = [each for each in programs if each not in fitting]
    assert other.broken([x]) == "a tensor got a gradient that it did not have, or lost the one it had"
    w.grad = None
    assert other.fits([x]) is not None and fitting[0].fits([x]) is None
    assert step(x).item() == 3


def test_an_argument_of_the_same_type_that_requires_gradients_needs_another_program():
    double = tn.compile(lambda x: x * 2)
    assert not double(tn.ones(3)).requires_grad
    assert double(tn.ones(3, requires_grad=True)).requires_grad
    assert not double(tn.ones(3)).requires_grad


# What becomes of memory


@pytest.mark.parametrize("hold", [False, True])
def test_state_lends_its_memory_unless_a_value_still_needs_it(hold, on_xla):
    state = tn.zeros(100_000)

    @tn.compile
    def add(x):
        state.add_(x)

    x = tn.ones(100_000)
    add(x), add(x)
    before = state.data_ptr()
    held = state * 2 if hold else None  # not computed yet
    add(x)
    assert (state.data_ptr() == before) != hold
    assert state[0].item() == 3
    assert held is None or held[0].item() == 4


def test_an_interrupt_after_a_run_loses_no_state(on_xla, monkeypatch):
    state = tn.zeros(1000).eval()

    @tn.compile
    def add(x):
        state.add_(x)
        return state.sum()

    x = tn.ones(1000).eval()
    add(x).item()
    program, interrupts = only(add), iter([KeyboardInterrupt])

    def interrupted(*_: Any) -> None:
        for interrupt in interrupts:
            raise interrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(program), "tells_elsewhere", True)
        patch.setattr(type(program), "_elsewhere", interrupted)
        with pytest.raises(KeyboardInterrupt):
            add(x)
    assert state[0].item() == 2  # the run was over: what it wrote is there, once
    assert add(x).item() == 3000


@pytest.mark.parametrize("width", [3, 100_000])
def test_a_check_that_fails_gives_back_what_was_lent(width, on_xla):
    table = tn.zeros(4, width).eval()

    @tn.compile
    def add(place):
        table.index_add_(0, place, tn.ones(1, width))

    add(tn.tensor([1]))
    with pytest.raises(IndexError):
        add(tn.tensor([4]))
    add(tn.tensor([2]))
    assert table.numpy()[:, 0].tolist() == [0, 1, 1, 0]


# Where results belong


def test_results_go_to_state_arguments_gradients_and_the_caller():
    state, w = tn.ones(2), tn.ones(2, requires_grad=True)

    @tn.compile
    def step(x, again):
        state.mul_(2)
        again.add_(1)
        (w * x).sum().backward()
        y = x + 1
        return {"new": y, "state": state, "argument": again, "twice": [y, x]}

    for turn in (1, 2):
        x, again = tn.full((2,), 3.0), tn.zeros(2)
        found = step(x, again)
        assert found["new"].tolist() == [4, 4] and found["twice"][0] is found["new"]
        assert found["state"] is state and state.tolist() == [2.0**turn] * 2
        assert found["argument"] is again and again.tolist() == [1, 1]
        assert found["twice"][1] is x
        assert w.grad.tolist() == [3.0 * turn] * 2


def test_a_leaf_that_is_an_argument_is_written_where_autograd_does_not_look():
    @tn.compile
    def halve(w):
        with tn.no_grad():
            w.mul_(0.5)

    w = tn.ones(2, requires_grad=True)
    halve(w)
    assert w.is_leaf and w.requires_grad and w.tolist() == [0.5, 0.5]
    (w * 3).sum().backward()
    assert w.grad.tolist() == [3, 3]
    computed = tn.ones(2, requires_grad=True) * 2
    halve(computed)
    assert computed.tolist() == [1, 1]


def test_what_was_differentiated_inside_cannot_be_again():
    w = tn.ones(2, requires_grad=True)

    @tn.compile
    def step(x):
        loss = (w * x).sum()
        loss.backward()
        return loss

    loss = step(tn.ones(2))
    assert loss.requires_grad
    with pytest.raises(RuntimeError):
        loss.backward()
