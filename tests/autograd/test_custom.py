"""Functions whose gradient is the user's own: as PyTorch has them, errors included."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn
from tests.autograd.cases import DATA, agree, leaf, refused


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


CASES = [
    custom_function,
    custom_function_of_two,
    dirty_result,
    dirty_view_of_a_base,
    dirty_base_that_has_a_view,
    dirty_view_of_a_base_without_gradients,
    saved_tensors_as_they_were,
    saved_result_in_a_second_derivative,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_it_agrees_with_pytorch(case):
    agree(case)


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


def complex_gradient_from_a_function(m):
    returning(m, m.complex64).apply(leaf(m)).sum().backward()


def a_number_is_saved(m):
    class Saving(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3.0)
            return x * 3

    Saving.apply(leaf(m))


def what_is_no_tensor_is_a_gradient(m):
    class Returning(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, gradient):
            return "gradient"

    Returning.apply(leaf(m)).sum().backward()


REFUSED = [
    a_number_is_saved,
    what_is_no_tensor_is_a_gradient,
    write_to_what_a_function_saved,
    write_to_a_result_that_a_function_saved,
    write_to_memory_behind_what_a_function_saved,
    dirty_leaf,
    dirty_view_of_a_leaf,
    dirty_and_not_returned,
    complex_gradient_from_a_function,
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.__name__)
def test_it_is_refused_as_pytorch_refuses_it(case):
    refused(case)


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


def adding(m, gradient_of_second):
    """A Function that adds, and leaves it to the caller to sum what broadcasting stretched."""

    class Add(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, b):
            return x + b

        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient_of_second(gradient)

    return Add


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1), ()])
def test_a_gradient_is_summed_to_the_shape_of_its_argument(shape):
    def case(m):
        x, b = leaf(m), m.ones(shape, requires_grad=True)
        (adding(m, lambda gradient: gradient * 3).apply(x, b) * m.tensor(DATA)).sum().backward()
        return [x.grad, b.grad]

    agree(case)


def test_a_transformed_function_sums_gradients_to_their_arguments():
    def loss(b):
        return (adding(tn, lambda gradient: gradient).apply(tn.tensor(DATA), b) * tn.tensor(DATA)).sum()

    assert tn.func.grad(loss)(tn.ones(3)).tolist() == tn.tensor(DATA).sum(0).tolist()


def test_a_gradient_of_another_shape_is_refused_with_the_shapes_that_are_taken():
    function = adding(tn, lambda gradient: gradient[:1])
    refused(lambda m: adding(m, lambda g: g[:1]).apply(leaf(m), leaf(m)).sum().backward())
    with pytest.raises(tn.ShapeError, match=r"(?s)Add.backward returned f32\[1,3\].*help: .*shape \[2, 3\]"):
        function.apply(leaf(tn), leaf(tn)).sum().backward()


def test_a_gradient_nobody_asked_for_may_have_any_shape():
    def case(m):
        x = leaf(m)
        adding(m, lambda gradient: gradient[0]).apply(x, m.tensor(DATA)).sum().backward()
        return [x.grad]

    agree(case)


def test_what_forward_returns_besides_tensors_has_a_place_among_the_gradients():
    def case(m):
        class Pair(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.factor = 3
                ctx.save_for_backward(x)
                return None, x * 3, "name"

            @staticmethod
            def backward(ctx, none, gradient, name):
                assert none is None and name is None
                return gradient * ctx.factor

        x = leaf(m)
        _, y, _ = Pair.apply(x)
        shared = y.grad_fn
        assert shared.factor == 3 and shared.needs_input_grad == (True,)
        (saved,) = shared.saved_tensors
        y.sum().backward()
        return [saved, x.grad]

    agree(case)


@pytest.mark.parametrize("given", [(), (4,)], ids=str)
def test_setup_context_sees_the_defaults_of_forward(given):
    results = []
    for t in (tn, torch):

        class Power(t.autograd.Function):
            @staticmethod
            def forward(x, exponent=3):
                return x**exponent

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, ctx.exponent = inputs
                ctx.save_for_backward(x)

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return gradient * ctx.exponent * x ** (ctx.exponent - 1), None

        x = t.tensor([2.0, 3.0], requires_grad=True)
        y = Power.apply(x, *given)
        y.sum().backward()
        results.append([y.tolist(), x.grad.tolist()])
    assert results[0] == results[1]


def _scaling(library, seen):
    class Scale(library.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight=None, factor=2):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, gradient):
            seen.append(ctx.needs_input_grad)
            return (gradient * ctx.factor, None, None)[: len(ctx.needs_input_grad)]

    return Scale


@pytest.mark.parametrize(
    "given",
    [
        lambda apply, x: apply(x=x),
        lambda apply, x: apply(x, weight=None),
        lambda apply, x: apply(x, None, factor=5),
        lambda apply, x: apply(factor=4, weight=x, x=x),
    ],
)
def test_arguments_of_apply_may_be_given_by_name(given):
    results = []
    for library in (tn, torch):
        seen = []
        x = library.tensor([2.0, 3.0], requires_grad=True)
        y = given(_scaling(library, seen).apply, x)
        y.sum().backward()
        results.append([y.tolist(), x.grad.tolist(), seen])
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "given, message",
    [
        (lambda apply, x: apply(x, other=1), "unexpected keyword argument 'other'"),
        (lambda apply, x: apply(x, ctx=1), "unexpected keyword argument 'ctx'"),
        (lambda apply, x: apply(x, None, 2, factor=2), "multiple values for argument 'factor'"),
        (lambda apply, x: apply(x, factor=2), r"missing required argument: 'weight' \(position 1\)"),
    ],
)
def test_names_that_apply_does_not_take_are_refused(given, message):
    for library in (tn, torch):
        with pytest.raises(TypeError, match=message):
            given(_scaling(library, []).apply, library.ones(1, requires_grad=True))


def test_a_hook_after_a_gradient_may_write_to_the_leaf():
    x = tn.tensor([1.0, 2.0], requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: (leaf.sub_(leaf.grad), None)[1])
    (x * 3).sum().backward()
    assert x.tolist() == [-2.0, -1.0] and x.requires_grad and x.is_leaf


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_hook_after_a_gradient_follows_gradients_where_a_graph_is_created(create_graph):
    modes = []
    for t in (tn, torch):
        x = t.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda leaf, t=t: modes.append(t.is_grad_enabled()))
        (x * x).sum().backward(create_graph=create_graph)
    assert modes == [create_graph, create_graph]


def test_backward_calls_itself_as_deeply_as_it_likes():
    def run(xp, depth, fault=False):
        class Deeper(xp.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with xp.enable_grad():
                    ctx.x = (x.detach() - 1).requires_grad_()
                return ctx.x.detach()

            @staticmethod
            def backward(ctx, gradient):
                if ctx.x >= 0:
                    with xp.enable_grad():
                        Deeper.apply(ctx.x).backward()
                    return ctx.x.grad + gradient
                if fault:
                    raise LookupError("at the bottom")
                return gradient

        x = xp.tensor(float(depth), requires_grad=True)
        Deeper.apply(x).backward()
        return x.grad.item()

    assert run(tn, 300) == run(torch, 300) == 301
    with pytest.raises(LookupError, match="at the bottom"):
        run(tn, 100, fault=True)


def test_deep_backward_computes_under_the_settings_of_its_thread():
    def run(xp, depth):
        found = set()

        class Deeper(xp.autograd.Function):
            @staticmethod
            def forward(ctx, x, left):
                ctx.left = left
                return x * 1

            @staticmethod
            def backward(ctx, gradient):
                found.add((xp.ones(2, 2) @ xp.ones(2, 2)).dtype)
                if ctx.left:
                    with xp.enable_grad():
                        x = xp.ones((), requires_grad=True)
                        xp.autograd.grad(Deeper.apply(x, ctx.left - 1), x)
                return gradient, None

        with xp.autocast("cpu", dtype=xp.bfloat16):
            Deeper.apply(xp.ones((), requires_grad=True), depth).backward()
        return [str(dtype).rpartition(".")[2] for dtype in found]

    assert run(tn, 60) == run(torch, 60) == ["bfloat16"]
