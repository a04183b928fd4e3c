"""How gradients flow: each case runs in Tenfold and in PyTorch and must agree, errors included."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tests.autograd.cases import DATA, agree, leaf, refused


def accumulating(m):
    x = leaf(m)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    return [x.grad]


def hypot_at_the_origin(m):
    x, y = leaf(m, [0.0, 3.0, 0.0]), leaf(m, [0.0, 4.0, 2.0])
    return m.autograd.grad(m.hypot(x, y).sum(), [x, y])


def lengths_of_zeros_twice(m):
    x = leaf(m, [[0.0, 0.0, 0.0], [1.5, 0.75, -0.5]])
    z = m.complex(x, 2 * x)
    (first,) = m.autograd.grad(x.norm(dim=1).sum() + z.norm(dim=1).sum(), x, create_graph=True)
    (second,) = m.autograd.grad(first.sum(), x)
    return [first, second]


def grad_of_several(m):
    x, w = leaf(m), leaf(m, [[1.0], [2.0], [3.0]])
    y = (x @ w).tanh()
    return m.autograd.grad([y.sum(), (x * x).mean()], [x, w])


def given_gradient(m):
    x = leaf(m)
    y = x.exp()
    y.backward(m.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]]))
    return [x.grad]


def through_tensors_without_elements(m):
    x, fixed = leaf(m, [-1.0, -2.0]), m.ones(2)
    kept = x[x > 0]
    given = []
    for result in (
        m.cat([kept, fixed]),
        m.zeros(2).masked_scatter(x > 0, kept),
        m.zeros(2).index_put((x > 0,), kept),
        m.zeros(2).index_add(0, m.arange(0), kept),
        m.zeros(2).scatter_add(0, m.arange(0), kept),
    ):
        (gradient,) = m.autograd.grad(result.sum(), x, retain_graph=True)
        given += [result, gradient]
    return given


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


def gradients_of_a_gradient_come_to_what_it_depends_on(m):
    x, w, b = leaf(m), leaf(m), leaf(m)
    (slope,) = m.autograd.grad((x * w).tanh().sum() + b.sum(), x, create_graph=True)
    (slope * slope).sum().backward()
    (flat_slope,) = m.autograd.grad((x * 2 + b).sum(), x, create_graph=True)
    assert b.grad is None and not flat_slope.requires_grad
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


def zeros_for_what_only_chooses(m):
    sign, grid = leaf(m), m.zeros(1, 2, 2, 2, requires_grad=True)
    m.copysign(m.ones(2, 3), sign).sum().backward()
    image = m.arange(9.0).reshape(1, 1, 3, 3)
    m.nn.functional.grid_sample(image, grid, mode="nearest", align_corners=True).sum().backward()
    return [sign.grad, grid.grad]


CASES = [
    accumulating,
    hypot_at_the_origin,
    lengths_of_zeros_twice,
    grad_of_several,
    given_gradient,
    through_tensors_without_elements,
    unused_input,
    second_order,
    second_order_of_an_inner_value,
    through_backward_with_graph,
    views_and_writes,
    written_without_gradients,
    hooks,
    hooks_on_a_diamond,
    removed_hook,
    detached,
    without_gradients,
    integers_on_the_way,
    twice_the_same,
    evaluated_on_the_way,
    retained_graph,
    linear_graph_twice,
    chosen_inputs,
    gradients_of_a_gradient_come_to_what_it_depends_on,
    complex_numbers,
    random_dropout,
    indexed_writes,
    zeros_for_what_only_chooses,
]


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


def deepcopy_of_a_result(m):
    import copy

    copy.deepcopy(leaf(m) * 2)


REFUSED = [
    no_graph,
    not_a_number,
    second_backward,
    write_to_a_leaf,
    write_to_a_view_of_a_leaf,
    write_to_a_saved_result,
    write_to_a_saved_input,
    write_to_a_saved_leaf,
    integers,
    unused,
    numpy_of_what_requires_grad,
    wrong_gradient_shape,
    turned_off_inside,
    hook_without_gradient,
    complex_gradient_of_a_real_result,
    real_gradient_of_a_complex_result,
    hook_of_a_leaf_that_returns_another_dtype,
    hook_inside_that_returns_another_dtype,
    deepcopy_of_a_result,
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.__name__)
def test_it_is_refused_as_pytorch_refuses_it(case):
    refused(case)


def test_a_write_that_no_gradient_needs_is_allowed():
    for m in (tn, torch):
        x = leaf(m)
        y = x + 1
        y.mul_(2)
        y.sum().backward()
        assert float(x.grad.sum()) == 12


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


def test_the_arguments_of_older_programs_keep_their_places():
    x = tn.tensor([1.0, 2.0], requires_grad=True)
    unused = tn.ones(2, requires_grad=True)
    found = tn.autograd.grad((x * x).sum(), [x, unused], None, None, False, True, True)
    assert found[0].tolist() == [2, 4] and found[1] is None
    tn.autograd.backward(x * x, grad_variables=tn.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]


def test_a_tensor_has_a_gradient_by_itself(choose_tier):
    for tier in ("", "numpy", "xla"):
        choose_tier(tier)
        x = tn.ones(3, requires_grad=True)
        y = x * 2
        assert tn.autograd.grad(x, x, tn.full((3,), 5.0))[0].tolist() == [5.0, 5.0, 5.0]
        assert tn.autograd.grad([x, y], x, [tn.ones(3), tn.ones(3)])[0].tolist() == [3.0, 3.0, 3.0]
        assert tn.autograd.grad(y.contiguous(), y, tn.ones(3))[0].tolist() == [1.0, 1.0, 1.0]
        x.backward(tn.ones(3))
        assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_dictionary_of_inputs_gives_a_dictionary_of_gradients():
    def gradients(m):
        layer = m.nn.Linear(2, 1)
        inputs = dict(layer.named_parameters())
        found = m.autograd.grad(layer(m.ones(3, 2)).sum(), inputs)
        layer(m.ones(3, 2)).sum().backward(inputs={"bias": layer.bias})
        m.autograd.backward(layer(m.ones(1, 2)).sum(), inputs={"bias": layer.bias})
        return (
            {name: each.tolist() for name, each in found.items()},
            layer.weight.grad,
            layer.bias.grad.item(),
        )

    assert gradients(tn) == gradients(torch)


@pytest.mark.parametrize("m", [tn, torch], ids=["tenfold", "torch"])
def test_unused_inputs_get_zeros_on_request(m):
    x, unused = m.ones(2, requires_grad=True), m.ones(3, requires_grad=True)
    used, zeros = m.autograd.grad((x * 2).sum(), [x, unused], materialize_grads=True)
    assert used.tolist() == [2, 2] and zeros.tolist() == [0, 0, 0]
    starts = (m.eye(2),)
    used, zeros = m.autograd.grad(
        x * 2, [x, unused], starts, is_grads_batched=True, materialize_grads=True, allow_unused=True
    )
    assert used.tolist() == [[2, 0], [0, 2]] and zeros.tolist() == [0, 0, 0]


def _result():
    return (tn.ones(2, requires_grad=True) * 2).sum()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _result().backward(inputs=[]), "inputs= is empty"),
        (lambda: tn.autograd.backward([_result()], [None, None]), "2 gradients are given for 1 tensors"),
        (lambda: tn.autograd.backward([3.0]), "gradients are those of a Tensor, not of a float"),
        (lambda: tn.autograd.grad(_result(), ()), "inputs is empty"),
        (lambda: tn.ones(2).retain_grad(), "does not require gradients has none to retain"),
    ],
)
def test_what_it_is_called_with_is_refused_in_its_own_words(call, message):
    with pytest.raises(tn.TenfoldError, match=message):
        call()
