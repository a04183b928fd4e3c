"""Gradients with PyTorch's rules: each case runs in both and must agree, errors included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.utils.checkpoint

import tenfold as tn

DATA = [[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]]


def both(case):
    """What a case gives with Tenfold and with PyTorch: lists of arrays."""
    results = []
    for module in (tn, torch):
        found = case(module)
        results.append([None if each is None else np.asarray(each.detach().numpy()) for each in found])
    return results


def agree(case):
    ours, theirs = both(case)
    assert len(ours) == len(theirs)
    for mine, golden in zip(ours, theirs, strict=True):
        if golden is None:
            assert mine is None
        else:
            np.testing.assert_allclose(mine, golden, rtol=1e-5, atol=1e-6)


def leaf(m, data=DATA):
    return m.tensor(data, requires_grad=True)


def doubling_in_place(m):
    """A Function that doubles its argument where it lies."""

    class Double(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    return Double


def saving(m, save_result):
    """A Function that is exp, and saves its argument or its result."""

    class Exp(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y if save_result else x)
            return y

        @staticmethod
        def backward(ctx, gradient):
            (saved,) = ctx.saved_tensors
            return gradient * (saved if save_result else saved.exp())

    return Exp


def accumulating(m):
    x = leaf(m)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    return [x.grad]


def grad_of_several(m):
    x, w = leaf(m), leaf(m, [[1.0], [2.0], [3.0]])
    y = (x @ w).tanh()
    return m.autograd.grad([y.sum(), (x * x).mean()], [x, w])


def given_gradient(m):
    x = leaf(m)
    y = x.exp()
    y.backward(m.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]]))
    return [x.grad]


def unused_input(m):
    x, w = leaf(m), leaf(m)
    return m.autograd.grad((x * 2).sum(), [x, w], allow_unused=True)


def second_order(m):
    x = leaf(m)
    (first,) = m.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = m.autograd.grad((first * first).sum(), x, create_graph=True)
    (third,) = m.autograd.grad(second.sum(), x)
    return [first, second, third]


def second_order_of_an_inner_value(m):
    x = leaf(m)
    h = x.sin()
    (first,) = m.autograd.grad((h**3).sum(), h, create_graph=True)
    return m.autograd.grad(first.sum(), [h, x])


def through_backward_with_graph(m):
    x = leaf(m)
    (x**3).sum().backward(create_graph=True)
    penalty = (x.grad**2).sum()
    x.grad = None
    penalty.backward()
    return [x.grad]


def views_and_writes(m):
    x = leaf(m)
    y = x * 1.0
    y[0].mul_(3)
    y[:, 1] = x[:, 0] * 2
    (y * y).sum().backward()
    return [x.grad]


def written_without_gradients(m):
    x = leaf(m)
    with m.no_grad():
        x.mul_(2)
    (x * x).sum().backward()
    return [x.grad, x]


def hooks(m):
    x = leaf(m)
    h = x * 2
    seen = []
    h.register_hook(lambda g: seen.append(g) or g * 10)
    x.register_hook(lambda g: g + 1)
    h.retain_grad()
    (h * h).sum().backward()
    return [x.grad, h.grad, *seen]


def hooks_on_a_diamond(m):
    x = leaf(m)
    a = x * 2
    b = a.sin()
    a.register_hook(lambda g: g * 3)
    b.register_hook(lambda g: g.clamp(min=0))
    ((a * b).sum() + b.sum()).backward()
    return [x.grad]


def removed_hook(m):
    x = leaf(m)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    (x * 2).sum().backward()
    return [x.grad]


def detached(m):
    x = leaf(m)
    (x * x.detach()).sum().backward()
    return [x.grad]


def without_gradients(m):
    x = leaf(m)
    with m.no_grad():
        y = x * 2
    assert not y.requires_grad
    with m.no_grad(), m.enable_grad():
        z = x * y
    z.sum().backward()
    return [x.grad]


def integers_on_the_way(m):
    x = leaf(m)
    values, places = x.max(dim=1)
    (values.sum() + x.gather(1, places[:, None]).sum()).backward()
    return [x.grad]


def twice_the_same(m):
    x = leaf(m)
    (x * x * x).sum().backward()
    return [x.grad]


def evaluated_on_the_way(m):
    x = leaf(m)
    h = (x * 2).tanh()
    h.sum().item()
    loss = (h * h).sum()
    loss.item()
    loss.backward()
    return [x.grad]


def retained_graph(m):
    x = leaf(m)
    loss = x.exp().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return [x.grad]


def linear_graph_twice(m):
    x = leaf(m)
    h = x + 2
    (h + 1).sum().backward()
    h.view(6).sum().backward()
    return [x.grad]


def chosen_inputs(m):
    x, w = leaf(m), leaf(m)
    (x * w).sum().backward(inputs=[w])
    return [x.grad, w.grad]


def complex_numbers(m):
    z = m.tensor([1 + 2j, -0.5 + 0.25j], requires_grad=True)
    ((z * z.conj()).real.sum() + (z**2).imag.sum()).backward()
    return [m.view_as_real(z.grad)]


def random_dropout(m):
    x = m.ones(1000, requires_grad=True)
    y = m.nn.functional.dropout(x, 0.5)
    y.sum().backward()
    assert bool(((x.grad == 2) == (y.detach() > 0)).all())
    return []


def indexed_writes(m):
    x = leaf(m)
    y = m.zeros(4, 3)
    y[1:3] = x * 2
    y[0, 0] = x[0, 0] ** 2
    (y * y).sum().backward()
    return [x.grad]


def custom_function(m):
    class Cube(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x**3 * scale

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 3 * x**2 * ctx.scale * 10, None

    x = leaf(m)
    h = x * 2
    y = Cube.apply(h, 0.5) + h
    (y * y).sum().backward()
    return [x.grad]


def custom_function_of_two(m):
    class Swap(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return y * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return second * 3, first * 2

    x, w = leaf(m), leaf(m)
    a, b = Swap.apply(x, w)
    (a * b).sum().backward()
    return [x.grad, w.grad]


def dirty_result(m):
    x = leaf(m)
    h = x * 3
    seen = []
    h.register_hook(lambda g: seen.append(g))
    y = doubling_in_place(m).apply(h)
    assert y is h
    (h * h).sum().backward()
    return [x.grad, h, *seen]


def dirty_view_of_a_base(m):
    x = leaf(m)
    h = x * 1
    v = h.t()[1:]
    assert doubling_in_place(m).apply(v) is v
    (h * h + x * 5).sum().backward()
    return [x.grad, h]


def dirty_base_that_has_a_view(m):
    x = leaf(m)
    h = x * 1
    v = h[0]
    assert doubling_in_place(m).apply(h) is h
    ((v * v).sum() + (x * 5).sum()).backward()
    return [x.grad, h, v]


def dirty_view_of_a_base_without_gradients(m):
    class Scale(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x.clone())
            ctx.mark_dirty(x)
            return x.mul_(scale)

        @staticmethod
        def backward(ctx, gradient):
            return None, gradient * ctx.saved_tensors[0]

    w, base = leaf(m, [2.0, 3.0, 4.0]), m.tensor(DATA)
    Scale.apply(base[1], w)
    assert base.requires_grad
    (base * base).sum().backward()
    return [w.grad, base]


def saved_tensors_as_they_were(m):
    x, fixed = leaf(m), m.tensor(DATA)

    class Times(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y, None)
            return x * y

        @staticmethod
        def backward(ctx, gradient):
            y, nothing = ctx.saved_tensors
            assert nothing is None
            return gradient * y, None

    y = Times.apply(x, fixed)
    fixed.requires_grad_()  # no write
    y.sum().backward()
    return [x.grad]


def saved_result_in_a_second_derivative(m):
    x = leaf(m)
    (first,) = m.autograd.grad(saving(m, True).apply(x).sum(), x, create_graph=True)
    (first * first).sum().backward()
    return [first, x.grad]


CASES = [value for name, value in list(globals().items()) if callable(value) and name not in
         ("both", "agree", "leaf", "doubling_in_place", "saving")
         and getattr(value, "__module__", "") == __name__]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_it_agrees_with_pytorch(case):
    agree(case)


def no_graph(m):
    m.ones(2).sum().backward()


def not_a_number(m):
    leaf(m).exp().backward()


def second_backward(m):
    y = leaf(m).exp().sum()
    y.backward()
    y.backward()


def write_to_a_leaf(m):
    leaf(m).add_(1)


def write_to_a_view_of_a_leaf(m):
    leaf(m)[0] = 1.0


def write_to_a_saved_result(m):
    x = leaf(m)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def write_to_a_saved_input(m):
    x = leaf(m)
    h = x * 2
    y = h * h
    h.add_(1)
    y.sum().backward()


def write_to_a_saved_leaf(m):
    x = leaf(m)
    y = x * x
    with m.no_grad():
        x.add_(1)
    y.sum().backward()


def integers(m):
    m.ones(2, dtype=m.int64).requires_grad_()


def unused(m):
    x, w = leaf(m), leaf(m)
    m.autograd.grad(x.sum(), w)


def numpy_of_what_requires_grad(m):
    leaf(m).numpy()


def wrong_gradient_shape(m):
    leaf(m).exp().backward(m.ones(3))


def turned_off_inside(m):
    (leaf(m) * 2).requires_grad_(False)


def hook_without_gradient(m):
    m.ones(2).register_hook(print)


def write_to_what_a_function_saved(m):
    x = leaf(m)
    h = x * 3
    y = saving(m, False).apply(h)
    with m.no_grad():
        h.mul_(10)
    y.sum().backward()


def write_to_a_result_that_a_function_saved(m):
    y = saving(m, True).apply(leaf(m))
    y.mul_(2)
    y.sum().backward()


def write_to_memory_behind_what_a_function_saved(m):
    x = leaf(m)
    h = x * 3
    y = saving(m, False).apply(h[0])
    h[0, 0] = 7.0
    y.sum().backward()


def dirty_leaf(m):
    doubling_in_place(m).apply(leaf(m))


def dirty_view_of_a_leaf(m):
    doubling_in_place(m).apply(leaf(m)[0])


def dirty_and_not_returned(m):
    class Lost(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    Lost.apply(leaf(m) * 1)


def complex_gradient_of_a_real_result(m):
    leaf(m).exp().backward(m.ones(2, 3, dtype=m.complex64))


def real_gradient_of_a_complex_result(m):
    m.ones(2, dtype=m.complex64, requires_grad=True).exp().backward(m.ones(2))


def hook_of_a_leaf_that_returns_another_dtype(m):
    x = leaf(m)
    x.register_hook(lambda g: g.double())
    (x * 2).sum().backward()


def hook_inside_that_returns_another_dtype(m):
    h = leaf(m) * 2
    h.register_hook(lambda g: g.half())
    h.sum().backward()


def complex_gradient_from_a_function(m):
    returning(m, m.complex64).apply(leaf(m)).sum().backward()


def returning(m, dtype):
    """A Function of a factor 2, whose gradient comes in this dtype."""

    class Twice(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return (gradient * 2).to(dtype)

    return Twice


def deepcopy_of_a_result(m):
    import copy

    copy.deepcopy(leaf(m) * 2)


REFUSED = [no_graph, not_a_number, second_backward, write_to_a_leaf, write_to_a_view_of_a_leaf,
           write_to_a_saved_result, write_to_a_saved_input, write_to_a_saved_leaf, integers, unused,
           numpy_of_what_requires_grad, wrong_gradient_shape, turned_off_inside, hook_without_gradient,
           deepcopy_of_a_result, write_to_what_a_function_saved, write_to_a_result_that_a_function_saved,
           write_to_memory_behind_what_a_function_saved, dirty_leaf, dirty_view_of_a_leaf,
           dirty_and_not_returned, complex_gradient_of_a_real_result, real_gradient_of_a_complex_result,
           hook_of_a_leaf_that_returns_another_dtype, hook_inside_that_returns_another_dtype,
           complex_gradient_from_a_function]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.__name__)
def test_it_is_refused_as_pytorch_refuses_it(case):
    with pytest.raises(RuntimeError):
        case(torch)
    with pytest.raises(tn.TenfoldError):
        case(tn)


@pytest.mark.parametrize("returned", ["float64", "float16", "int64", "bool"])
def test_the_gradient_that_a_function_returns_takes_the_dtype_of_its_argument(returned):
    found = []
    for m in (tn, torch):
        x = leaf(m)
        returning(m, getattr(m, returned)).apply(x * 1).sum().backward()
        found.append((str(x.grad.dtype).rpartition(".")[2], x.grad.tolist()))
    assert found[0] == found[1]


def test_a_write_after_a_function_saved_is_told_where_the_function_was_called():
    h = leaf(tn) * 3
    y = saving(tn, False).apply(h).sum()
    h.detach().zero_()
    with pytest.raises(tn.GradientError, match=r"Exp: a value .* f32\[2,3\], was written in place"):
        y.backward()


def test_a_function_that_writes_a_view_is_compiled():
    w = leaf(tn)

    @tn.compile
    def step(x):
        h = w * x
        doubling_in_place(tn).apply(h[0])
        (h * 3).sum().backward()
        found, w.grad = w.grad, None
        return found

    for factor in (1.0, 2.0):
        assert step(tn.full((2, 3), factor)).tolist() == [[6 * factor] * 3, [3 * factor] * 3]


def test_a_write_that_no_gradient_needs_is_allowed():
    for m in (tn, torch):
        x = leaf(m)
        y = x + 1
        y.mul_(2)
        y.sum().backward()
        assert float(x.grad.sum()) == 12


def test_forward_and_backward_are_one_program():
    from tenfold.runtime import evaluate

    def step(scale):
        x = tn.tensor(DATA, requires_grad=True)
        loss = (x * scale).tanh().sum()
        loss.backward()
        tn.eval(loss, x.grad)
        return x.grad

    step(tn.ones(2, 3).eval())
    other = tn.full((2, 3), 2.0).eval()
    with evaluate.counting_compiles() as compiles:
        step(other)
    assert compiles == 0


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


@pytest.mark.parametrize("make", ["no_grad", "enable_grad", "inference_mode"])
def test_modes_decorate_functions(make):
    decorated = getattr(tn, make)()(lambda x: x * 2)
    expected = getattr(torch, make)()(lambda x: x * 2)
    assert decorated(leaf(tn)).requires_grad == expected(leaf(torch)).requires_grad
    assert tn.is_grad_enabled()


def test_set_grad_enabled_holds_until_its_end():
    with tn.set_grad_enabled(False):
        assert not tn.is_grad_enabled()
    assert tn.is_grad_enabled()
    tn.set_grad_enabled(False)
    assert not tn.is_grad_enabled()
    tn.set_grad_enabled(True)
    assert tn.is_grad_enabled()


def test_the_printed_tensor_says_where_it_comes_from():
    x = tn.tensor([1.0], requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"


def detached_inside(x):
    return x * x.detach()


def without_gradients_inside(x):
    for m in (tn, torch):
        if isinstance(x, m.Tensor):
            with m.no_grad():
                doubled = x * 2
    return x * doubled


TRANSFORMS = {
    "compile": lambda m: tn.compile if m is tn else lambda function: function,
    "checkpoint": lambda m: (
        lambda function: lambda x: m.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
    ),
    "vmap": lambda m: m.vmap,
}


@pytest.mark.parametrize("function", [detached_inside, without_gradients_inside])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_gradients_stop_inside_a_transformed_function_where_python_says(transform, function):
    def case(m):
        x = leaf(m)
        transform(m)(function)(x).sum().backward()
        return [x.grad]

    agree(case)


def test_a_tangent_stops_where_python_says():
    x, t = np.float32([1, 2, 3]), np.float32([1, 1, 1])
    ours = tn.func.jvp(detached_inside, (tn.tensor(x),), (tn.tensor(t),))[1]
    theirs = torch.func.jvp(detached_inside, (torch.tensor(x),), (torch.tensor(t),))[1]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy())


def test_a_function_of_several_results_gives_each_its_gradient():
    def case(m):
        class Two(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, first, second):
                return first * 2 + second * 3

        x = leaf(m)
        first, second = Two.apply(x)
        first.retain_grad()
        second.retain_grad()
        (first * second).sum().backward()
        return [first.grad, second.grad, x.grad]

    agree(case)


def test_gradients_do_not_share_what_python_returned():
    def case(m):
        class Sum(m.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x + y

            @staticmethod
            def backward(ctx, gradient):
                return gradient, gradient

        x, y = leaf(m), leaf(m)
        for _ in range(2):
            Sum.apply(x, y).sum().backward()
        return [x.grad, y.grad]

    agree(case)


def test_gradients_of_one_result_are_taken_one_after_the_other():
    def case(m):
        x, y = leaf(m), leaf(m)
        total = (x.exp() + y.exp()).sum()
        return [*m.autograd.grad(total, x), *m.autograd.grad(total, y)]

    agree(case)


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_modified_bessel_functions_have_second_derivatives_at_zero(name):
    def second(lib):
        x = lib.tensor([0.0, 0.5, -3.0], dtype=lib.float64, requires_grad=True)
        (slope,) = lib.autograd.grad(getattr(lib.special, name)(x).sum(), x, create_graph=True)
        return lib.autograd.grad(slope.sum(), x)[0]

    assert second(tn).tolist() == pytest.approx(second(torch).tolist())


def test_a_gradient_may_be_given_to_a_result():
    result = tn.ones(2, requires_grad=True) * 2
    result.grad = tn.full((2,), 3.0)
    result.add_(1)
    assert result.grad.tolist() == [3, 3]
    result.grad = None
    assert result.grad is None


def test_a_hook_runs_without_gradients():
    for m in (tn, torch):
        x, w = leaf(m), leaf(m)
        x.register_hook(lambda g, w=w: g * w)
        (x * 2).sum().backward()
        assert not x.grad.requires_grad


@pytest.mark.parametrize("write", [lambda x: x.detach().mul_(5), lambda x: x.data.mul_(5)])
def test_a_leaf_that_is_frozen_keeps_what_was_written(write):
    for m in (tn, torch):
        x = leaf(m)
        write(x)
        x.requires_grad_(False)
        np.testing.assert_allclose(np.asarray(x), np.float32(DATA) * 5)


def test_what_python_says_about_gradients_outside_is_refused_inside_compile():
    x = leaf(tn)
    hooked = tn.compile(lambda x: (x * 2).register_hook(print) and x * 2)

    def with_hook(x):
        y = x * 2
        y.register_hook(lambda g: g * 7)
        return y * 3

    with pytest.raises(tn.TraceError, match="a hook or an autograd.Function"):
        tn.compile(with_hook)(x)
    assert hooked(x).requires_grad  # the hook is on something else


def test_what_is_no_tensor_is_refused():
    x = leaf(tn)
    with pytest.raises(tn.ArgumentError, match="for a Tensor, not for a int"):
        tn.autograd.grad(x.sum(), [3])
    with pytest.raises(tn.ArgumentError, match="is a Tensor, not a float"):
        x.sum().backward(3.0)


class HalfOfTheSquare(tn.autograd.Function):
    """x squared, with half of its gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, cotangent):
        return cotangent * ctx.saved_tensors[0]


def test_gradcheck_agrees_with_right_gradients_and_finds_wrong_ones():
    x = tn.randn(3, dtype=tn.float64, requires_grad=True)
    y = tn.randn(2, 3, dtype=tn.float64, requires_grad=True)
    z = tn.randn(2, dtype=tn.complex128, requires_grad=True)
    assert tn.autograd.gradcheck(lambda x, y: (x.sin() * y, (x * y).sum()), (x, y))
    assert tn.autograd.gradcheck(lambda z: (z * z.conj() + z.exp(), z.abs()), z)
    assert tn.autograd.gradgradcheck(lambda x, y: (x**3 * y).sum(0), (x, y))
    assert not tn.autograd.gradcheck(HalfOfTheSquare.apply, x, raise_exception=False)
    with pytest.raises(tn.GradientError, match="Jacobian mismatch for output 0 with respect to input 0"):
        tn.autograd.gradcheck(HalfOfTheSquare.apply, x)
    with pytest.raises(tn.GradientError, match="not the same when it is computed again"):
        many = tn.ones(24, dtype=tn.float64, requires_grad=True)
        tn.autograd.gradcheck(lambda x: tn.nn.functional.dropout(x * 1.0), many)


def test_gradcheck_says_what_it_needs():
    with pytest.raises(tn.ArgumentError, match="an input that requires a gradient"):
        tn.autograd.gradcheck(lambda x: x * 2, tn.ones(2))
    with pytest.warns(UserWarning, match="float64 or complex128"):
        tn.autograd.gradcheck(lambda x: x * 2, tn.ones(2, requires_grad=True), atol=1e-1)
    with pytest.raises(tn.UnsupportedError, match="forward gradients"):
        tn.autograd.gradcheck(lambda x: x * 2, tn.ones(2, requires_grad=True), check_forward_ad=True)


def test_a_generator_keeps_its_mode_to_itself():
    @tn.no_grad()
    def inside():
        sent = yield tn.is_grad_enabled()
        try:
            yield sent, tn.is_grad_enabled()
        except ValueError:
            yield "caught", tn.is_grad_enabled()
        return "end"

    steps = inside()
    assert next(steps) is False
    assert tn.is_grad_enabled()
    assert steps.send(3) == (3, False)
    assert steps.throw(ValueError) == ("caught", False)
    with pytest.raises(StopIteration, match="end"):
        next(steps)
    assert tn.is_grad_enabled()


def test_inference_mode_is_turned_off_inside_another():
    with tn.inference_mode(), tn.inference_mode(False):
        assert (tn.ones(2, requires_grad=True) * 2).requires_grad


def test_a_write_through_data_leaves_the_history_as_it_was():
    x = tn.ones(2, requires_grad=True)
    y = x * 3
    y.data.mul_(0)
    assert y.tolist() == [0, 0]
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_the_gradient_to_retain_is_that_of_what_was_written():
    x = tn.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]
    assert x.grad.tolist() == [6, 6]


def test_no_tensor_is_its_own_gradient():
    x = tn.ones(2, requires_grad=True)
    with pytest.raises(tn.GradientError, match="its own gradient"):
        x.grad = x


def functional_results(lib):
    f = lib.autograd.functional
    x, y = (lib.tensor(each, dtype=lib.float64) for each in ([0.5, -1.0, 2.0], [1.5, 0.3]))
    pair = lambda a, b: (a.exp() * b.sum(), (a.sum() * b).sin())
    number = lambda a, b: (a.sum() * b.prod()) ** 2 + (a**3).sum()
    return [
        f.jacobian(lambda a: a.cumsum(0) ** 2, x, create_graph=True),
        f.jacobian(pair, (x, y), strategy="forward-mode", vectorize=True),
        f.jacobian(lambda a: (a * 2, lib.ones(2, dtype=lib.float64)), x),
        f.hessian(number, (x, y)),
        f.hessian(lambda a: a.norm() ** 3, x),
        f.vjp(pair, (x, y), (x, y)),
        f.jvp(pair, (x, y), (x, y)),
        f.vhp(number, (x, y), (x, y)),
        f.hvp(lambda a: (a**3).sum(), x, x),
    ]


def test_functional_derivatives_are_pytorchs():
    def leaves(found):
        return (
            [each for part in found for each in leaves(part)] if isinstance(found, (tuple, list)) else [found]
        )

    ours, theirs = leaves(functional_results(tn)), leaves(functional_results(torch))
    tn.eval(*ours)
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our.detach().numpy(), their.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_functional_says_what_it_needs():
    f, x = tn.autograd.functional, tn.ones(2)
    with pytest.raises(tn.GradientError, match="does not depend"):
        f.jacobian(lambda a: a.detach(), x, strict=True)
    with pytest.raises(tn.GradientError, match="v is needed"):
        f.vjp(lambda a: a * 2, x)
    with pytest.raises(tn.GradientError, match="one number"):
        f.hessian(lambda a: a * 2, x)


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
    with pytest.raises(tn.ArgumentError, match="count their gradients"):
        tn.autograd.grad(x * 2, x, is_grads_batched=True)


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


def test_the_graph_behind_a_tensor_can_be_walked():
    x, y = tn.ones(2, requires_grad=True), tn.ones(2, requires_grad=True)
    product = x * y
    result = product.exp()
    (step, place), *others = result.grad_fn.next_functions
    assert (step, place, others) == (product.grad_fn, 0, [])
    assert step is product.grad_fn
    assert type(step).__name__ == step.name() == "MulBackward0"
    assert isinstance(step, tn.autograd.graph.Node)
    ends = [each for each, _ in step.next_functions]
    assert ends[0].variable is x and ends[1].variable is y
    assert ends[0].name() == "AccumulateGrad" and ends[0].next_functions == ()
    assert tn.autograd.graph.get_gradient_edge(product) == (product.grad_fn, 0)
    with pytest.raises(tn.GradientError, match="has no edge"):
        tn.autograd.graph.get_gradient_edge(tn.ones(1))


def test_the_op_that_nan_comes_from_is_named():
    x = tn.tensor([0.0, 4.0], requires_grad=True)
    with tn.autograd.detect_anomaly():
        assert tn.is_anomaly_enabled()
        (x.exp().sqrt() * 2).sum().backward()
        roots = (x * 0).sqrt()
        with pytest.raises(tn.GradientError, match="the gradient of mul has NaN"):
            (roots * 3).sum().backward()
        roots.register_hook(lambda gradient: gradient)
        with pytest.raises(tn.GradientError, match="a gradient has NaN"):
            (roots * 3).sum().backward()
    assert not tn.is_anomaly_enabled()
    x.grad = None
    (x * 0).sqrt().sum().backward()
    assert x.grad.isnan().all()
