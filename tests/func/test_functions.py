"""Functions with a gradient of their own, inside transformations."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tests.func.cases import BATCH


class Clipped(tn.autograd.Function):
    """x³ whose gradient is cut off at 1, and a sum that has none."""

    @staticmethod
    def forward(ctx, x, y):
        square = x * x
        ctx.save_for_backward(square)
        ctx.mark_non_differentiable(total := y.sum())
        return square * x, total

    @staticmethod
    def backward(ctx, gradient, of_total):
        (square,) = ctx.saved_tensors
        return gradient * (3 * square).clamp(-1, 1), gradient


def test_a_function_of_ones_own_keeps_its_gradient_in_every_transformation():
    x, y = tn.tensor(BATCH), tn.tensor(BATCH[:, ::-1].copy())
    slope = np.clip(3 * BATCH**2, -1, 1)
    cubes, totals = tn.func.vmap(Clipped.apply)(x, y)
    np.testing.assert_allclose(cubes.numpy(), BATCH**3, rtol=1e-5)
    np.testing.assert_allclose(totals.numpy(), BATCH.sum(1), rtol=1e-4, atol=1e-6)
    loss = lambda a, b: Clipped.apply(a, b)[0].sum()
    by_x, by_y = tn.func.vmap(tn.func.grad(loss, argnums=(0, 1)))(x, y)
    np.testing.assert_allclose(by_x.numpy(), slope, rtol=1e-5)
    assert by_y.tolist() == np.ones_like(BATCH).tolist()
    twice = tn.func.vmap(tn.func.grad(lambda a: loss(a, a)))(x)
    np.testing.assert_allclose(twice.numpy(), slope + 1, rtol=1e-5)
    moved = tn.func.jvp(lambda a: Clipped.apply(a, y)[0], (x,), (x,))[1]
    np.testing.assert_allclose(moved.numpy(), slope * BATCH, rtol=1e-5)


def test_a_function_without_gradients_is_vmapped_and_refuses_them():
    class Doubled(tn.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    assert tn.func.vmap(Doubled.apply)(tn.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    w = tn.ones(2, 3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="no backward"):
        tn.func.vmap(Doubled.apply)(w).sum().backward()
        w.grad.tolist()
