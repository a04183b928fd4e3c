"""Functions with a gradient of their own, inside transformations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime.executables import counting_compiles
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


def _product(t):
    """A Function whose rules call it."""

    class Product(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            x, y = ctx.saved_tensors
            return Product.apply(gradient, y), Product.apply(gradient, x)

        @staticmethod
        def jvp(ctx, along_x, along_y):
            x, y = ctx.saved_tensors
            return Product.apply(along_x, y) + Product.apply(along_y, x)

    return Product.apply


TRANSFORMED = {
    "vmap": lambda f, cube, x, y: f.vmap(cube)(x),
    "vmap of grad": lambda f, cube, x, y: f.vmap(f.grad(lambda x: cube(x).sum()))(x),
    "hessian": lambda f, cube, x, y: f.hessian(lambda x: cube(x).sum())(x[0]),
    "third derivatives": lambda f, cube, x, y: f.jacrev(f.hessian(lambda x: cube(x).sum()))(x[0]),
    "jvp": lambda f, cube, x, y: f.jvp(cube, (x,), (y,))[1],
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_function_whose_rules_call_it_is_transformed(name):
    def run(t):
        product, x = _product(t), t.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        return TRANSFORMED[name](t.func, lambda x: product(x, product(x, x)), x, x + 1).tolist()

    assert run(tn) == run(torch)


def _own_vmap(t, calls):
    class Shifted(t.autograd.Function):
        @staticmethod
        def forward(x, y, factor):
            return x * factor + y, x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs[:2])
            ctx.factor = inputs[2]

        @staticmethod
        def backward(ctx, by_sum, by_product):
            x, y = ctx.saved_tensors
            return by_sum * ctx.factor + by_product * y, by_sum + by_product * x, None

        @staticmethod
        def vmap(info, in_dims, x, y, factor):
            calls.append((info.batch_size, [dim is None for dim in in_dims]))
            x, y = [
                each if dim is None else each.movedim(dim, 0)
                for each, dim in zip((x, y), in_dims, strict=False)
            ]
            total, product = Shifted.apply(x, y, factor)
            return (total + 100, product.mT if product.ndim == 2 else product), (0, product.ndim - 1)

    return lambda x, y: Shifted.apply(x, y, 3.0)


OF_OWN_VMAP = {
    "both": lambda f, g, x, y: f.vmap(g)(x, y),
    "one": lambda f, g, x, y: f.vmap(g, in_dims=(0, None))(x, y[0]),
    "the other, by columns": lambda f, g, x, y: f.vmap(g, in_dims=(None, 1))(x[:, 0], y),
    "nested": lambda f, g, x, y: f.vmap(f.vmap(g))(x, y),
    "gradients inside": lambda f, g, x, y: f.vmap(f.grad(lambda x, y: g(x, y)[0].sum(), (0, 1)))(x, y),
    "gradients of it": lambda f, g, x, y: f.grad(
        lambda x, y: sum((i * i).sum() for i in f.vmap(g)(x, y)), (0, 1)
    )(x, y),
}


@pytest.mark.parametrize("name", OF_OWN_VMAP)
def test_a_function_is_batched_by_its_own_vmap(name):
    def run(t):
        calls = []
        x, y = t.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), t.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])
        found = OF_OWN_VMAP[name](t.func, _own_vmap(t, calls), x, y)
        return [each.tolist() for each in found], calls

    (ours, called), (theirs, expected) = run(tn), run(torch)
    assert ours == theirs
    assert called == expected or "gradients" in name


def _batched_by(t, rule):
    class Ruled(t.autograd.Function):
        @staticmethod
        def forward(x, other):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2, None

        @staticmethod
        def vmap(info, in_dims, x, other):
            return rule(info, x, other), 0

    return lambda other, **options: t.func.vmap(lambda x: Ruled.apply(x, other), **options)(t.ones(3))


class _Scale:
    factor = 2.0


def _told_of_randomness(t):
    told = []
    call = _batched_by(t, lambda info, x, other: told.append(info.randomness) or x)
    for randomness in ("different", "same", "error"):
        call(1, randomness=randomness)
    return sorted(set(told))


def _of_an_object(t):
    scale, found = _Scale(), []
    call = _batched_by(t, lambda info, x, other: x * other.factor)
    for factor in (2.0, 3.0, 2.0, 3.0):
        scale.factor = factor
        found.append(call(scale).tolist())
    return found


OF_WHAT_IT_READS = {
    "a sign": lambda t: [
        _batched_by(t, lambda info, x, other: t.copysign(x, other))(sign).tolist()
        for sign in (0.0, -0.0, 0.0)
    ],
    "kinds in a tuple": lambda t: [
        str(call((number,)).dtype).partition(".")[2]
        for call in [_batched_by(t, lambda info, x, other: t.arange(3) * other[0])]
        for number in (1, 1.0, True)
    ],
    "an object": _of_an_object,
    "randomness": _told_of_randomness,
}


@pytest.mark.parametrize("name", OF_WHAT_IT_READS)
def test_a_vmap_of_ones_own_follows_what_it_reads_at_each_call(name):
    assert OF_WHAT_IT_READS[name](tn) == OF_WHAT_IT_READS[name](torch)


def test_a_vmap_of_ones_own_that_makes_the_same_is_compiled_once():
    call = _batched_by(tn, lambda info, x, other: x * other.factor)
    call(_Scale).tolist()
    with counting_compiles() as compiles:
        call(_Scale).tolist()
    assert compiles == 0


def test_a_vmap_of_ones_own_may_be_given_a_tensor_twice():
    def run(t):
        class Product(t.autograd.Function):
            @staticmethod
            def forward(x, y):
                return x * y

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def vmap(info, in_dims, x, y):
                return x * y + 10, 0

        return t.func.vmap(lambda x: Product.apply(x, x))(t.arange(3.0)).tolist()

    assert run(tn) == run(torch)


def test_a_backward_that_fails_is_no_matter_where_nothing_is_differentiated():
    class Doubled(tn.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise NotImplementedError("only for inference")

    assert tn.func.vmap(Doubled.apply)(tn.tensor([1.0, 2.0])).tolist() == [2, 4]
    with pytest.raises(NotImplementedError, match="only for inference"):
        tn.func.jacrev(tn.func.vmap(Doubled.apply))(tn.tensor([1.0, 2.0]))
