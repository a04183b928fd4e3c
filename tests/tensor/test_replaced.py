"""Writes through `.data` between forward and backward: gradients read what saved tensors hold then."""

import pytest
import torch

import tenfold as tn


def leaf(t, *numbers):
    return t.tensor([float(each) for each in numbers], requires_grad=True)


def square_of_rebound(t):
    w = leaf(t, 1, 2)
    y = w * w
    w.data = t.tensor([10.0, 20.0])
    y.sum().backward()
    return w, w.grad


def product_with_rebound(t):
    w, x = leaf(t, 1, 2), leaf(t, 3, 4)
    y = x * w
    w.data = t.tensor([10.0, 20.0])
    y.sum().backward()
    return x.grad, w.grad


def product_with_a_constant(t):
    w, x = t.tensor([1.0, 2.0]), leaf(t, 3, 4)
    y = x * w
    w.data = t.tensor([10.0, 20.0])
    y.sum().backward()
    return (x.grad,)


def matrix_product(t):
    w, x = t.ones(2, 2, requires_grad=True), t.ones(2, 2, requires_grad=True)
    y = x @ w
    w.data = t.full((2, 2), 5.0)
    y.sum().backward()
    return x.grad, w.grad


def linear_saves_a_view_of_its_weight(t):
    w, x = t.ones(1, 2, requires_grad=True), t.ones(1, 2, requires_grad=True)
    y, z = t.nn.functional.linear(x, w, t.zeros(1)), t.nn.functional.linear(x, w, t.zeros(1))
    w.data.mul_(3)
    (first,) = t.autograd.grad(y.sum(), x)
    w.data = t.full((1, 2), 7.0)
    z.sum().backward()
    return first, x.grad


def written_memory(t):
    w = leaf(t, 1, 2)
    y = w * w
    w.data.mul_(10)
    y.sum().backward()
    return w, w.grad


def written_memory_of_a_view(t):
    w, x = t.ones(2, 3, requires_grad=True), t.ones(2, 3, requires_grad=True)
    y = x * w.t().t()
    w.data[0].mul_(10)
    y.sum().backward()
    return x.grad, w.grad


def view_of_rebound(t):
    w, x = t.ones(2, 3, requires_grad=True), t.ones(3, 2, requires_grad=True)
    y = x * w.t()
    w.data = t.full((2, 3), 5.0)
    y.sum().backward()
    return x.grad, w.grad


def written_result(t):
    w = leaf(t, 1, 2)
    y = w.exp()
    y.data.fill_(3.0)
    y.sum().backward()
    return (w.grad,)


def written_result_that_was_used(t):
    w = leaf(t, 0, 1)
    y = w.tanh()
    total = y.sum()
    y.data.fill_(2.0)
    total.backward()
    return (w.grad,)


def rebound_result_that_was_computed(t):
    w = leaf(t, 1, 2)
    y = w.sigmoid()
    y.tolist()
    y.data = t.tensor([7.0, 8.0])
    y.sum().backward()
    return w.grad, y


def rebound_between_two_ops(t):
    w = leaf(t, 1, 2)
    y = w * 3
    z = y * y
    y.data = t.tensor([7.0, 8.0])
    z.sum().backward()
    return w.grad, y


def history_outlives_writes_to_what_was_assigned(t):
    w, other = leaf(t, 1, 2), t.tensor([5.0, 6.0])
    y = w * 2
    y.data = other
    other.mul_(2)
    (y * y).sum().backward()
    return w.grad, y


def memory_of_a_leaf_written_by_its_other_holder(t):
    w, other = leaf(t, 1, 2), t.tensor([5.0, 6.0])
    w.data = other
    y = w * w
    other.add_(1)
    y.sum().backward()
    return w.grad, w


def old_memory_written_after_rebinding(t):
    w = leaf(t, 1, 2)
    y = (w**2) * w
    old = w.data
    w.data = t.tensor([3.0, 3.0])
    old.add_(10)
    y.sum().backward()
    return w.grad, w, old


def swapped(t):
    a, b = leaf(t, 1, 2), leaf(t, 3, 4)
    y = a * b
    a.data, b.data = b.data, a.data
    y.sum().backward()
    return a.grad, b.grad, a, b


def another_dtype(t):
    w = leaf(t, 1, 2)
    y = w * w
    w.data = w.data.double() * 2
    y.sum().backward()
    return w.data, w.grad


def used_before_and_after(t):
    w = leaf(t, 1, 2)
    y = w * w
    w.data = t.tensor([10.0, 20.0])
    (y * w).sum().backward()
    return (w.grad,)


def two_losses_of_one_graph(t):
    w, x = leaf(t, 1, 2), t.tensor([1.0, 3.0])
    y = (w * x) ** 2
    y.sum().backward(retain_graph=True)
    w.data.sub_(0.1 * w.grad)
    w.grad.data.zero_()
    (y * w).sum().backward()
    return w, w.grad


def saved_by_a_function(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    v, w = leaf(t, 1, 2), leaf(t, 1, 2)
    y = Square.apply(v) + Square.apply(w)
    v.data.mul_(10)
    w.data = t.tensor([3.0, 4.0])
    y.sum().backward()
    return v.grad, w.grad


def differentiated_twice(t):
    w = leaf(t, 1, 2)
    y = w**3
    w.data.mul_(2)
    (first,) = t.autograd.grad(y.sum(), w, create_graph=True)
    return (first,)


CASES = [
    square_of_rebound,
    product_with_rebound,
    product_with_a_constant,
    matrix_product,
    linear_saves_a_view_of_its_weight,
    written_memory,
    written_memory_of_a_view,
    view_of_rebound,
    written_result,
    written_result_that_was_used,
    rebound_result_that_was_computed,
    rebound_between_two_ops,
    history_outlives_writes_to_what_was_assigned,
    memory_of_a_leaf_written_by_its_other_holder,
    old_memory_written_after_rebinding,
    swapped,
    another_dtype,
    used_before_and_after,
    two_losses_of_one_graph,
    saved_by_a_function,
    differentiated_twice,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_gradients_read_the_present_data_as_in_pytorch(case):
    for ours, theirs in zip(case(tn), case(torch), strict=True):
        assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
        torch.testing.assert_close(torch.tensor(ours.detach().numpy()), theirs.detach())


def test_a_compiled_function_that_writes_data_before_backward_agrees_with_an_eager_one():
    def step(w, x):
        y = w * x * w
        w.data.mul_(2)
        y.sum().backward()

    x = tn.tensor([1.0, 3.0])
    eager, compiled = leaf(tn, 1, 2), leaf(tn, 1, 2)
    step(eager, x)
    tn.compile(step)(compiled, x)
    assert compiled.grad.tolist() == eager.grad.tolist()
    assert compiled.tolist() == eager.tolist()


def test_data_of_another_shape_is_refused_where_a_gradient_saved_the_tensor():
    w = leaf(tn, 1, 2)
    y = w * w
    w.data = tn.ones(3)
    with pytest.raises(RuntimeError, match=r"needs f32\[2\], whose data was replaced by f32\[3\]"):
        y.sum().backward()


@pytest.mark.parametrize("write", [lambda w: w.detach().mul_(2), lambda w: w.set_(tn.ones(2))])
def test_writes_that_autograd_sees_are_refused_where_a_gradient_saved_the_tensor(write):
    w = leaf(tn, 1, 2)
    y = w * w
    with tn.no_grad():
        write(w)
    with pytest.raises(RuntimeError, match="written in place"):
        y.sum().backward()
