"""`once_differentiable`: gradients that have no gradients."""

from __future__ import annotations

import tenfold as tn


def test_what_is_differentiable_once_has_no_second_derivative():
    class Square(tn.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @tn.autograd.function.once_differentiable
        def backward(ctx, gradient):
            assert not tn.is_grad_enabled()
            return 2 * ctx.saved_tensors[0] * gradient

    x = tn.ones(2, requires_grad=True)
    (slope,) = tn.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert slope.tolist() == [2, 2]
    assert not slope.requires_grad
