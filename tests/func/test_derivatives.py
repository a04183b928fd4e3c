"""Derivatives: what they give, and what they are taken of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tests.func.cases import BATCH, MATRIX, VECTOR


def test_what_they_give_requires_no_gradients_of_its_own():
    gradient, value = tn.func.grad_and_value(lambda x: (x * x).sum())(tn.tensor(VECTOR))
    assert not gradient.requires_grad and not value.requires_grad
    weight = tn.tensor(VECTOR).requires_grad_()
    assert tn.func.grad(lambda x: (x * weight).sum())(tn.tensor(VECTOR)).requires_grad
    with tn.no_grad():
        assert not tn.func.grad(lambda x: (x * x * weight).sum())(tn.tensor(VECTOR)).requires_grad


def test_what_is_differentiated_inside_leaves_nothing_to_differentiate():
    weight, x = tn.tensor(VECTOR), tn.tensor(BATCH)
    loss = lambda w, row: (w * row).sum() ** 2
    per_row = tn.func.vmap(tn.func.grad(loss), in_dims=(None, 0))
    assert not per_row(weight, x).requires_grad
    assert not tn.func.jacrev(lambda w: w.sin() * w.sum())(weight).requires_grad
    weight.requires_grad_()
    (of_sum,) = tn.autograd.grad(per_row(weight, x).sum(), weight)
    np.testing.assert_allclose(of_sum.numpy(), 2 * (BATCH.sum(1) @ BATCH), rtol=1e-4)


def test_eigenvalues_move_with_a_real_matrix():
    matrix = MATRIX[:, :3].astype(np.float64)
    values, moved = tn.func.jvp(tn.linalg.eigvals, (tn.tensor(matrix),), (tn.eye(3, dtype=tn.float64),))
    np.testing.assert_allclose(moved.numpy(), np.ones(3), atol=1e-9)
    assert values.dtype is moved.dtype is tn.complex128


def test_value_and_grad_has_the_value_first():
    value, gradient = tn.func.value_and_grad(lambda x: (x * x).sum())(tn.tensor([1.0, 2.0]))
    assert value.item() == 5.0 and gradient.tolist() == [2.0, 4.0]


def test_strict_jvp_refuses_what_does_not_depend_on_the_arguments():
    x = tn.ones(2)
    assert tn.func.jvp(lambda x: x * 2, (x,), (x,), strict=True)[1].tolist() == [2, 2]
    assert tn.func.jvp(lambda x: tn.ones(2), (x,), (x,))[1].tolist() == [0, 0]
    with pytest.raises(tn.GradientError, match="does not depend"):
        tn.func.jvp(lambda x: tn.ones(2), (x,), (x,), strict=True)
    with pytest.raises(tn.ArgumentError, match="no tensor"):
        tn.func.jvp(lambda: x, (), ())


def test_cotangents_may_be_what_an_outer_level_differentiates_by():
    def program(library):
        grad, vjp, jacrev, hessian = [
            getattr(library.func, name) for name in ("grad", "vjp", "jacrev", "hessian")
        ]
        x, y = library.tensor(0.7), library.tensor(1.3)
        _, pull = vjp(lambda x: library.sin(x) * x, x)
        _, pull_slope = vjp(grad(lambda x: -library.cos(x)), x)
        found = [
            grad(lambda y: pull(y)[0])(y),
            grad(lambda y: pull(y * y)[0] * y)(y),
            grad(lambda y: pull_slope(y)[0])(y),
            jacrev(lambda y: pull(y)[0])(y),
            grad(grad(lambda z: vjp(lambda x: x**3 * z, x)[1](z * z)[0]))(y),
        ]
        requiring = [each.requires_grad for each in found]
        found.append(hessian(lambda y: pull(y)[0] ** 2)(y))
        w = library.tensor(2.0, requires_grad=True)
        pull(w)[0].backward()
        return requiring, [each.item() for each in (*found, w.grad)]

    (ours, values), (theirs, expected) = program(tn), program(torch)
    assert ours == theirs
    assert values == pytest.approx(expected, rel=1e-5)


def _read_without_gradients(t):
    def f(x):
        with t.no_grad():
            y = x**3
        return y * x

    return f


def _written_without_gradients(t):
    def f(x):
        y = x**3 * 1
        with t.no_grad():
            y.mul_(2.0)
        return y * x

    return f


def _written_through_detach(t):
    def f(x):
        y = x**3 * 1
        y.detach().mul_(2.0)
        return y * x

    return f


def _detached(t):
    return lambda x: x.detach() ** 2 * x


@pytest.mark.parametrize(
    "make", [_read_without_gradients, _written_without_gradients, _written_through_detach, _detached]
)
def test_tangents_pass_no_grad_and_not_detach(make):
    def derivatives(t):
        x, one, function = t.tensor(1.5), t.tensor(1.0), make(t)
        along = lambda x: t.func.jvp(function, (x,), (one,))[1]
        found = (
            function(x),
            along(x),
            t.func.jacfwd(function)(x),
            t.func.grad(function)(x),
            t.func.grad(along)(x),
        )
        return [each.item() for each in found]

    np.testing.assert_allclose(derivatives(tn), derivatives(torch), rtol=1e-6)


def _scaled_through_detach(t):
    def f(x):
        y = x * 1
        y.detach().mul_(2.0)
        return (y**3).sum()

    return f


def _moved_through_detach(t):
    def f(x):
        y = x.clone()
        y.detach().mul_(x)
        return (y**3).sum()

    return f


def _read_through_detach(t):
    def f(x):
        y = x * x
        return (y.detach().mul_(2) * x * y).sum()

    return f


@pytest.mark.parametrize("make", [_scaled_through_detach, _moved_through_detach, _read_through_detach])
def test_tangents_of_gradients_pass_by_what_is_written_through_detach(make):
    def derivatives(t):
        function, x, f = make(t), t.tensor([2.0, 3.0]), t.func
        seconds = [
            f.hessian,
            *[lambda g, a=a, b=b: a(b(g)) for a in (f.jacfwd, f.jacrev) for b in (f.jacfwd, f.grad)],
        ]
        return [second(function)(x).tolist() for second in seconds]

    np.testing.assert_allclose(derivatives(tn), derivatives(torch), rtol=1e-5)
