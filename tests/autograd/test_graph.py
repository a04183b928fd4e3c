"""What made a tensor, as it can be seen and walked; and the op that NaN came from."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

import tenfold as tn
from tests.autograd.cases import agree, leaf


def test_the_printed_tensor_says_where_it_comes_from():
    x = tn.tensor([1.0], requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"


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
    assert type(ends[0]).__name__ == "AccumulateGrad" and ends[0].next_functions == ()
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


def test_a_hook_of_several_tensors_is_called_once_for_all():
    def calls(m: Any, mode: str) -> list[Any]:
        seen: list[Any] = []
        first, second, apart = (m.tensor([2.0, 3.0], requires_grad=True) for _ in range(3))
        product = first * second

        def hook(given: Any) -> None:
            seen.append([each if each is None else each.tolist() for each in given] if mode == "all" else 1)

        watched = [first, product, second, apart]
        handle = m.autograd.graph.register_multi_grad_hook(watched, hook, mode=mode)
        (product.sum() * 2).backward()
        (first * 3).sum().backward()
        handle.remove()
        (first * 3).sum().backward()
        return seen

    for mode in ("all", "any"):
        assert calls(tn, mode) == calls(torch, mode)
    with pytest.raises(ValueError, match="mode is 'all' or 'any'"):
        tn.autograd.graph.register_multi_grad_hook([], print, mode="some")


def test_a_hook_of_several_tensors_outlives_a_backward_that_failed():
    x, y = tn.ones(2, requires_grad=True), tn.ones(2, requires_grad=True)
    seen = []
    tn.autograd.graph.register_multi_grad_hook([x, y], lambda gradients: seen.append(len(gradients)))

    def fail(gradient):
        raise RuntimeError("once")

    handle = y.register_hook(fail)
    with pytest.raises(RuntimeError, match="once"):
        (x * y).sum().backward()
    handle.remove()
    (x * y).sum().backward()
    assert seen == [2]


def test_hooks_of_several_tensors_belong_to_their_thread():
    wrong = []

    def work():
        mine = threading.get_ident()
        x, y = tn.ones(2, requires_grad=True), tn.ones(2, requires_grad=True)
        calls = []
        tn.autograd.graph.register_multi_grad_hook([x, y], lambda _: calls.append(threading.get_ident()))
        for count in range(1, 20):
            (x * y).sum().backward()
            if calls != [mine] * count:
                wrong.append((count, len(calls)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_step_is_the_same_whenever_it_is_asked_for():
    y = leaf(tn) * 2
    y.grad_fn.metadata["name"] = "double"
    assert y.grad_fn.metadata == {"name": "double"} and len({y.grad_fn, y.grad_fn}) == 1


def test_gradients_are_taken_from_and_for_edges():
    def case(m):
        x = leaf(m)
        y = x.exp()
        edge = m.autograd.graph.get_gradient_edge(y)
        found = m.autograd.grad((y * y).sum(), edge)
        del y
        m.autograd.backward(edge, m.ones(2, 3) * 2)
        return [*found, x.grad]

    agree(case)


def test_saved_tensors_may_be_written_where_that_is_allowed():
    def case(m):
        x = leaf(m)
        with m.autograd.graph.allow_mutation_on_saved_tensors():
            y = x * 2
            z = (y * y).exp()
            y.mul_(0)
            z.add_(1)
            z.sum().backward()
        return [x.grad, y, z]

    agree(case)


def test_steps_are_called_as_in_pytorch():
    def names(m):
        x, v, stack = (m.ones(*shape, requires_grad=True) for shape in ([3, 3], [3], [2, 3, 3]))
        image, f = m.ones(1, 2, 6, 6, requires_grad=True), m.nn.functional
        made = [
            *(x * 2, x @ x, x @ v, v @ v, stack @ stack, x.sum(), x.sum(0), x.mean(0), x.max(), x.max(0)[0]),
            *(2**x, x**x, x.clamp(0, 1), x.T, x.reshape(9), x.flatten(), x[0], x[1:], x.t().contiguous()),
            *(f.linear(x, x, v), f.linear(x, x), f.linear(stack, x, v), f.conv2d(image, image), f.relu6(x)),
            *(f.max_pool2d(image, 2), f.avg_pool2d(image, 2), f.cross_entropy(x, m.tensor([0, 1, 2]))),
            *(f.layer_norm(x, (3,)), f.mse_loss(x, x.detach()), m.linalg.inv(x + m.eye(3))),
        ]
        return [each.grad_fn.name() for each in made]

    assert names(tn) == names(torch)


def test_hooks_of_the_node_that_accumulates_run_around_it_after_those_of_the_leaf():
    def program(library):
        seen = []
        w = library.ones(2, requires_grad=True)
        node = w.view_as(w).grad_fn.next_functions[0][0]
        node.register_hook(lambda gone, come: seen.append(("after", gone, come[0].tolist(), w.grad.tolist())))
        handle = node.register_prehook(
            lambda come: (seen.append(("before", come[0].tolist())), (come[0] * 3,))[1]
        )
        w.register_hook(lambda gradient: (seen.append(("leaf", gradient.tolist())), gradient * 5)[1])
        w.register_post_accumulate_grad_hook(lambda leaf: seen.append(("accumulated", leaf.grad.tolist())))
        (w * 2).sum().backward()
        (gradient,) = library.autograd.grad((w * 2).sum(), w)
        handle.remove()
        (w * w).sum().backward()
        return seen, gradient.tolist(), w.grad.tolist()

    assert program(tn) == program(torch)


def test_edges_of_a_grad_fn_name_what_gradients_are_for():
    def program(library):
        edge = library.autograd.graph.GradientEdge
        x, y = [library.tensor([each], requires_grad=True).clone() for each in (2.0, 3.0)]
        out = (x * y).sum()
        edges = [edge(each.grad_fn, each.output_nr) for each in (x, y)]
        return [gradient.tolist() for gradient in library.autograd.grad(out, edges)]

    assert program(tn) == program(torch)


@pytest.mark.parametrize("library", [tn, torch])
@pytest.mark.parametrize("count", [0, 2])
def test_a_node_takes_a_gradient_for_each_of_its_results(library, count):
    x = library.ones(1, requires_grad=True) ** 2
    with pytest.raises(TypeError):
        x.grad_fn(*[x.detach()] * count)


def test_hooks_of_a_functions_node_see_places_for_all_that_forward_returned():
    def program(library):
        class Both(library.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor, y):
                ctx.factor = factor
                return factor * x, factor, factor * y

            @staticmethod
            def backward(ctx, of_x, _, of_y):
                return ctx.factor * of_x, None, ctx.factor * of_y

        x, y, seen = library.ones(2, requires_grad=True), library.ones(2, requires_grad=True), []
        first, _, last = Both.apply(x, 3, y)

        def before(come):
            seen.append([None if each is None else each.tolist() for each in come])
            return come[0] * 2, None, come[2] * 5

        first.grad_fn.register_prehook(before)
        first.grad_fn.register_hook(lambda gone, come: seen.append((len(gone), len(come))))
        total = (first + last).sum()
        total.backward()
        total.backward()  # it saved no tensors
        return seen, x.grad.tolist(), y.grad.tolist()

    assert program(tn) == program(torch)


def test_materialized_gradients_can_be_differentiated():
    def program(library):
        x = library.tensor(0.5, requires_grad=True)
        slope = library.tensor(2.0, requires_grad=True)
        first = library.autograd.grad(x * slope, x, create_graph=True)
        options = {"allow_unused": True, "materialize_grads": True}
        second = library.autograd.grad(first, x, create_graph=True, **options)
        return (
            second[0].item(),
            second[0].requires_grad,
            library.autograd.grad(second, x, **options)[0].item(),
        )

    assert program(tn) == program(torch)
