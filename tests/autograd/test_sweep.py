"""The backward sweep: its programs, what it holds, and hooks on the way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.autograd import sweep
from tests.autograd.cases import DATA, agree, leaf


@pytest.mark.usefixtures("on_xla")
def test_forward_and_backward_are_one_program():
    from tenfold.runtime import executables

    def step(scale):
        x = tn.tensor(DATA, requires_grad=True)
        loss = (x * scale).tanh().sum()
        loss.backward()
        tn.eval(loss, x.grad)
        return x.grad

    step(tn.ones(2, 3).eval())
    other = tn.full((2, 3), 2.0).eval()
    with executables.counting_compiles() as compiles:
        step(other)
    assert compiles == 0


@pytest.mark.usefixtures("collects_quickly")
def test_the_graph_is_let_go_after_backward():
    import gc
    import weakref

    x = tn.tensor(DATA, requires_grad=True)
    h = x.exp()
    reference = weakref.ref(h)
    loss = (h * h).sum()
    loss.backward()
    loss.item()
    del h
    gc.collect()
    assert reference() is None


def test_gradients_of_one_result_are_taken_one_after_the_other():
    def case(m):
        x, y = leaf(m), leaf(m)
        total = (x.exp() + y.exp()).sum()
        return [*m.autograd.grad(total, x), *m.autograd.grad(total, y)]

    agree(case)


def test_a_hook_runs_without_gradients():
    for m in (tn, torch):
        x, w = leaf(m), leaf(m)
        x.register_hook(lambda g, w=w: g * w)
        (x * 2).sum().backward()
        assert not x.grad.requires_grad


@pytest.mark.parametrize("hooked", [False, True])
def test_several_gradients_are_taken_at_once(hooked):
    x, y = tn.tensor([1.0, 2.0], requires_grad=True), tn.tensor([3.0, 4.0], requires_grad=True)
    product = x * y
    if hooked:
        product.register_hook(lambda g: g * 10)
    starts = [tn.eye(2), tn.tensor([5.0, 6.0])]
    by_x, by_y = tn.autograd.grad([product, x.sum()], [x, y], starts, is_grads_batched=True)
    times = 10 if hooked else 1
    assert by_x.tolist() == [[3 * times + 5, 5], [6, 4 * times + 6]]
    assert by_y.tolist() == [[times, 0], [0, 2 * times]]
    assert not by_x.requires_grad
    with pytest.raises(tn.ArgumentError, match="all have one size"):
        tn.autograd.grad(x * 2, x, is_grads_batched=True)


def test_a_dense_gradient_is_added_to_a_sparse_one():
    results = []
    for package in (tn, torch):
        weight = package.ones(3, 2, requires_grad=True)
        places = package.tensor([0, 2])
        package.nn.functional.embedding(places, weight, sparse=True).sum().backward()
        (weight * 3).sum().backward()
        results.append((weight.grad.is_sparse, weight.grad.tolist()))
    assert results[0] == results[1]


class Product(tn.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, cotangent):
        x, y = ctx.saved_tensors
        return cotangent * y, cotangent * x


def test_a_sweep_through_many_functions_asks_for_few_gradients_at_each(monkeypatch):
    asked = []
    plain = sweep.gradient
    monkeypatch.setattr(
        sweep, "gradient", lambda starts, cotangents, wants, *a, **k: asked.append(len(wants))
        or plain(starts, cotangents, wants, *a, **k),
    )  # fmt: skip

    def gradients(product, count=60):
        weight, x = tn.full((3,), 0.9, requires_grad=True), tn.ones(3, requires_grad=True)
        y = x
        for _ in range(count):
            y = product(y, weight).sin() + 0.1 * weight
        y.sum().backward()
        return weight.grad.tolist(), x.grad.tolist()

    through = gradients(Product.apply)
    assert max(asked) <= 3  # the next Function's result and argument, and the weight
    for found, expected in zip(through, gradients(lambda x, y: x * y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
