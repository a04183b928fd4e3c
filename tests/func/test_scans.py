"""`scan`, `associative_scan` and `map`, beside the loops that they stand for in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.func import associative_scan, scan

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3)).astype(np.float32)


def recurrence(t, x, w, reverse=False):
    """A linear recurrence by a loop, and its outputs."""
    h, found = t.zeros(3), []
    for row in reversed(x.unbind(0)) if reverse else x.unbind(0):
        h = t.tanh(h * w + row)
        found.append(h * 2)
    return h, t.stack(found[::-1] if reverse else found)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_a_loop_with_its_gradients(reverse):
    w = tn.tensor([0.5, -0.5, 1.0], requires_grad=True)
    x = tn.tensor(X, requires_grad=True)

    def combine(h, row):
        h = tn.tanh(h * w + row)
        return h, h * 2

    last, ys = scan(combine, tn.zeros(3), x, reverse=reverse)
    (last.sum() + (ys * ys).sum()).backward()
    tw = torch.tensor([0.5, -0.5, 1.0], requires_grad=True)
    tx = torch.tensor(X, requires_grad=True)
    tlast, tys = recurrence(torch, tx, tw, reverse)
    (tlast.sum() + (tys * tys).sum()).backward()
    pairs = [(last, tlast), (ys, tys), (w.grad, tw.grad), (x.grad, tx.grad)]
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_scan_takes_trees_and_other_dimensions():
    xs = {"a": tn.tensor(X), "b": tn.ones(5, 3)}
    (total, count), ys = scan(
        lambda c, x: ((c[0] + x["a"] * x["b"], c[1] + 1), {"sum": c[0]}),
        (tn.zeros(5), tn.tensor(0)),
        xs,
        dim=1,
    )
    np.testing.assert_allclose(total.numpy(), X.sum(1), rtol=1e-5)
    assert count.item() == 3 and ys["sum"].shape == (5, 3)
    np.testing.assert_allclose(ys["sum"].numpy()[:, 1:], np.cumsum(X, 1)[:, :-1], rtol=1e-5)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_combines_all_before(dim, reverse):
    def combine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    decay, x = np.linspace(0.5, 0.9, 15, dtype=np.float32).reshape(5, 3), X
    _, found = associative_scan(combine, (tn.tensor(decay), tn.tensor(x)), dim, reverse=reverse)
    a, b = (np.moveaxis(each, dim, 0) for each in (decay, x))
    rows = range(len(a))[::-1] if reverse else range(len(a))
    expected, h = np.zeros_like(b), np.zeros_like(b[0])
    for i in rows:
        h = h * a[i] + b[i]
        expected[i] = h
    np.testing.assert_allclose(found.numpy(), np.moveaxis(expected, 0, dim), rtol=1e-4, atol=1e-5)


def test_associative_scan_has_gradients_and_compiles():
    x = tn.tensor(np.abs(X) + 0.5, requires_grad=True)
    associative_scan(lambda a, b: a * b, x, 0).sum().backward()
    theirs = torch.tensor(np.abs(X) + 0.5, requires_grad=True)
    theirs.cumprod(0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), rtol=1e-4)
    compiled = tn.compile(lambda x: associative_scan(lambda a, b: a + b, x, 0))
    np.testing.assert_allclose(compiled(tn.tensor(X)).numpy(), X.cumsum(0), rtol=1e-4, atol=1e-5)


def test_map_stacks_what_a_function_gives():
    found = tn.func.map(lambda x, k: (x.cumsum(0) * k, x.sum()), tn.tensor(X), 2)
    np.testing.assert_allclose(found[0].numpy(), X.cumsum(1) * 2, rtol=1e-5)
    np.testing.assert_allclose(found[1].numpy(), X.sum(1), rtol=1e-5)


def test_extents_that_differ_are_refused():
    with pytest.raises(tn.ShapeError, match="one extent along dim"):
        associative_scan(lambda a, b: a, (tn.ones(2), tn.ones(3)), 0)
