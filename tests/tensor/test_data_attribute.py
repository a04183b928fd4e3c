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


def written_then_rebound(t):
    v, w = leaf(t, 1, 1), leaf(t, 1, 1)
    y = (w * w).sum() + (v * v).sum()
    w.data.mul_(3)
    w.data = w.data * 2
    v.data.mul_(3)
    z = (v * v * v).sum()
    v.data = v.data * 2
    v.data.mul_(7)
    (y + z).backward()
    return w.grad, v.grad


def constant_written_through_what_was_assigned(t):
    w, x, source = leaf(t, 1, 1), t.ones(2), t.full((2,), 2.0)
    x.data = source
    y = x * w
    source.mul_(5)
    y.sum().backward()
    return (w.grad,)


def constant_whose_assigned_data_is_written(t):
    w, x = leaf(t, 1, 1), t.ones(2)
    x.data = t.full((2,), 2.0)
    y = x * w + x[1] * w
    x.data.mul_(5)
    y.sum().backward()
    return (w.grad,)


def source_written_through_what_it_was_assigned_to(t):
    w, x, source = leaf(t, 1, 1), t.ones(2), t.full((2,), 2.0)
    y = source * w
    x.data = source
    z = source * w
    x.mul_(5)
    (y + z).sum().backward()
    return (w.grad,)


def held_data_written_through_the_tensor(t):
    w, x = leaf(t, 1, 1), t.ones(2)
    data = x.data
    y = data * w
    x.mul_(5)
    y.sum().backward()
    return (w.grad,)


def norm_keeps_its_result(t):
    v, w = leaf(t, 1, 2, 3), leaf(t, 1, 2, 3)
    y = v.norm() + t.linalg.vector_norm(w, 3) * 2
    v.data.mul_(2)
    w.data = t.tensor([4.0, 5.0, 6.0])
    y.backward()
    return v.grad, w.grad


def results_that_nobody_holds_are_kept(t):
    w = t.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    values, _ = w.sort(1)
    y = (values * w.softmax(1)).sum()
    w.data.mul_(2)
    y.backward()
    return (w.grad,)


CASES = [
    written_then_rebound,
    constant_written_through_what_was_assigned,
    constant_whose_assigned_data_is_written,
    source_written_through_what_it_was_assigned_to,
    held_data_written_through_the_tensor,
    norm_keeps_its_result,
    results_that_nobody_holds_are_kept,
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


WRITES = {
    "mul_": lambda t, x: x.mul_(5),
    "copy_": lambda t, x: x.copy_(t.ones(2)),
    "view": lambda t, x: x[:1].mul_(5),
    "detached": lambda t, x: x.detach().mul_(5),
    "rebound and written": lambda t, x: (setattr(x, "data", t.full((2,), 3.0)), x.mul_(5)),
    "hidden and written": lambda t, x: (x.data.mul_(2), x.mul_(5)),
}


def saved_by_an_op(t, x, w):
    return x * w


def saved_by_a_function_of_the_user(t, x, w):
    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x)
            return x * w

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return None, x * gradient

    return Product.apply(x, w)


@pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "torch"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("use", [saved_by_an_op, saved_by_a_function_of_the_user])
def test_a_tensor_that_was_given_data_tells_autograd_of_its_own_writes(use, write, t):
    x, w = t.ones(2), leaf(t, 1, 1)
    x.data = t.full((2,), 2.0)
    y = use(t, x, w)
    write(t, x)
    with pytest.raises(RuntimeError, match="written in place after it was used|modified by an inplace"):
        y.sum().backward()


@pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "torch"])
def test_a_leaf_that_was_given_data_tells_autograd_of_writes_to_its_views(t):
    w = leaf(t, 1, 1)
    w.data = t.full((2,), 2.0)
    y = w * w
    with t.no_grad():
        w[:1].mul_(5)
    with pytest.raises(RuntimeError, match="written in place after it was used|modified by an inplace"):
        y.sum().backward()


@pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "torch"])
def test_an_op_that_writes_over_given_data_keeps_what_it_read(t):
    x, w = t.ones(2), leaf(t, 3, 4)
    x.data = t.full((2,), 2.0)
    x.mul_(w)
    x.sum().backward()
    assert w.grad.tolist() == [2, 2]


RECOMPUTED = {  # PyTorch's gradients compute again what they need of their inputs
    "pow": lambda t, w: w**3,
    "pow of tensors": lambda t, w: w ** t.tensor([2.0, 3.0, 0.5]),
    "addcmul": lambda t, w: t.addcmul(w, w, w, value=2),
    "addcdiv": lambda t, w: t.addcdiv(w, w, w + 2, value=2),
    "leaky_relu": lambda t, w: t.nn.functional.leaky_relu(w - 1.2),
    "elu": lambda t, w: t.nn.functional.elu(-w, alpha=2.0),
    "celu": lambda t, w: t.nn.functional.celu(-w, alpha=2.0),
    "selu": lambda t, w: t.nn.functional.selu(-w),
    "softplus": lambda t, w: t.nn.functional.softplus(w),
    "hardsigmoid": lambda t, w: t.nn.functional.hardsigmoid(w),
    "hardswish": lambda t, w: t.nn.functional.hardswish(w),
    "hardshrink": lambda t, w: t.nn.functional.hardshrink(w, 1.2),
    "softshrink": lambda t, w: t.nn.functional.softshrink(w, 1.2),
    "threshold": lambda t, w: t.nn.functional.threshold(w, 1.2, 0.0),
    "glu": lambda t, w: t.nn.functional.glu(w[:2], 0),
    "mse_loss": lambda t, w: t.nn.functional.mse_loss(w, t.ones(3)),
    "smooth_l1_loss": lambda t, w: t.nn.functional.smooth_l1_loss(w, t.ones(3)),
    "huber_loss": lambda t, w: t.nn.functional.huber_loss(w, t.ones(3)),
    "binary_cross_entropy": lambda t, w: t.nn.functional.binary_cross_entropy(w, t.tensor([1.0, 0.0, 1.0])),
}


@pytest.mark.parametrize("op", RECOMPUTED.values(), ids=RECOMPUTED)
def test_gradients_compute_again_what_pytorch_computes_again(op):
    def gradient(t):
        w = leaf(t, 0.25, 0.5, 0.75)
        held = w * 1
        y = op(t, held)
        held.data.mul_(1.25)
        y.sum().backward()
        return w.grad

    torch.testing.assert_close(torch.tensor(gradient(tn).numpy()), gradient(torch))


REFUSED = {
    "cross_entropy": lambda t, w: t.nn.functional.cross_entropy(w, t.tensor([0, 1, 1])),
    "det": lambda t, w: t.linalg.det(w),
    "inv": lambda t, w: t.linalg.inv(w),
    "prod": lambda t, w: w.prod(1),
    "cosine_similarity": lambda t, w: t.nn.functional.cosine_similarity(w, t.eye(3)),
    "layer_norm": lambda t, w: t.nn.functional.layer_norm(w, (3,)),
    "attention": lambda t, w: t.nn.functional.scaled_dot_product_attention(w[None], w[None], w[None]),
    "gru": lambda t, w: t.gru_cell(w, w, w.repeat(3, 1), w.repeat(3, 1)),
    "lstm": lambda t, w: t.lstm_cell(w, (w, w), w.repeat(4, 1), w.repeat(4, 1))[0],
    "cdist": lambda t, w: t.cdist(w, t.eye(3)),
    "multi_dot": lambda t, w: t.linalg.multi_dot([w, w, w]),
    "triplet_margin_loss": lambda t, w: t.nn.functional.triplet_margin_loss(w, t.eye(3), t.ones(3, 3)),
    "qr": lambda t, w: t.linalg.qr(w)[1],
    "reciprocal": lambda t, w: w.reciprocal(),
    "erfinv": lambda t, w: t.erfinv(w),
    "amax": lambda t, w: w.amax(1),
}
AGREED = {
    "normalize": lambda t, w: t.nn.functional.normalize(w),
    "softmax": lambda t, w: w.softmax(1),
    "std": lambda t, w: w.std(),
    "logsumexp": lambda t, w: w.logsumexp(1),
}


def gradient_of_replaced(t, op):
    w = t.tensor([[1.0, 2.0, 0.5], [0.0, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
    y = op(t, w)
    w.data.mul_(1.25)
    (y * y).sum().backward()
    return w.grad


@pytest.mark.parametrize("op", REFUSED.values(), ids=REFUSED)
def test_gradients_that_need_more_than_inputs_and_results_are_refused(op):
    with pytest.raises(tn.GradientError, match=r"whose data was replaced through \.data"):
        gradient_of_replaced(tn, op)


@pytest.mark.parametrize("op", AGREED.values(), ids=AGREED)
def test_gradients_keep_the_results_of_the_forward_pass(op):
    ours, theirs = gradient_of_replaced(tn, op), gradient_of_replaced(torch, op)
    torch.testing.assert_close(torch.tensor(ours.numpy()), theirs)
