"""What vmap does with random numbers, with state, and with writes that gradients pass by."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn


def noise(x):
    return x + tn.rand(3)


def test_random_numbers_under_vmap_are_an_error_unless_said():
    with pytest.raises(tn.TraceError, match="draws random numbers"):
        tn.func.vmap(noise)(tn.zeros(4))


def test_random_numbers_may_be_the_same_or_different():
    tn.manual_seed(0)
    same_drawn = tn.func.vmap(noise, randomness="same")(tn.zeros(4))
    different = tn.func.vmap(noise, randomness="different")(tn.zeros(4))
    again = tn.func.vmap(noise, randomness="different")(tn.zeros(4))
    plain = tn.rand(3)
    tn.eval(same_drawn, different, again, plain)
    assert (same_drawn == same_drawn[0]).all()
    drawn = np.concatenate([each.numpy().reshape(-1, 3) for each in (same_drawn[0], different, again, plain)])
    assert len(np.unique(drawn)) == drawn.size
    assert drawn.min() >= 0 and drawn.max() < 1


def test_different_random_numbers_are_spread_evenly():
    tn.manual_seed(1)
    drawn = tn.func.vmap(lambda x: tn.randn(50), randomness="different")(tn.zeros(200)).numpy()
    assert abs(drawn.mean()) < 0.05 and abs(drawn.std() - 1) < 0.05
    assert np.abs(np.corrcoef(drawn[:8]) - np.eye(8)).max() < 0.6


def test_nested_vmaps_draw_different_numbers():
    tn.manual_seed(2)
    inner = tn.func.vmap(lambda x: x + tn.rand(()), randomness="different")
    drawn = tn.func.vmap(inner, randomness="different")(tn.zeros(3, 4)).numpy()
    assert len(np.unique(drawn)) == 12
    with pytest.raises(tn.TraceError, match="draws random numbers"):
        tn.func.vmap(inner)(tn.zeros(3, 4))


def test_the_seed_decides():
    drawn = []
    for _ in range(2):
        tn.manual_seed(7)
        drawn.append(tn.func.vmap(noise, randomness="different")(tn.zeros(4)).numpy())
    np.testing.assert_array_equal(*drawn)


def test_state_that_all_share_may_be_written():
    count, seen = tn.zeros(()), tn.zeros(())

    def counted(x):
        count.add_(1)
        return x * count

    assert tn.func.vmap(counted)(tn.ones(3)).tolist() == [1.0] * 3
    assert count.item() == 1.0
    with pytest.raises(tn.TraceError, match="a tensor from outside the function is written"):
        tn.func.vmap(lambda x: seen.add_(x))(tn.ones(3))
    assert seen.item() == 0.0


def test_an_argument_that_is_written_is_written_outside():
    x = tn.zeros(3, 2)
    tn.func.vmap(lambda a: a.add_(1).sum(), in_dims=1)(x).eval()
    assert x.tolist() == [[1.0, 1.0]] * 3


def test_a_result_requires_gradients_only_if_its_element_does():
    w = tn.ones(3, requires_grad=True)

    def without_gradients(a):
        with tn.no_grad():
            return a * 2

    vmap, grad = tn.func.vmap, tn.func.grad
    for cut in (
        lambda a: a.detach(),
        lambda a: a.detach() * 2,
        lambda a: tn.zeros_like(a).add_(a.detach()),
        tn.zeros_like,
        without_gradients,
        grad(lambda a: a * 2),
        tn.func.jacrev(lambda a: a * 2),
    ):
        assert not vmap(cut)(w).requires_grad
        assert not vmap(cut, chunk_size=2)(w).requires_grad
        assert not vmap(vmap(cut))(w.reshape(3, 1)).requires_grad
    for kept in (
        lambda a: a,
        lambda a: a.detach() * a,
        lambda a: a**0,
        grad(lambda a: a * a),
        lambda a: w[0],
    ):
        assert vmap(kept)(w).requires_grad
    both = vmap(lambda a: (a.detach(), a * 2))(w)
    assert [each.requires_grad for each in both] == [False, True]
    vmap(lambda a: a * 2)(w).sum().backward()
    assert w.grad.tolist() == [2.0] * 3


def test_gradients_of_an_ensemble_require_none_where_they_are_constant():
    models = [tn.nn.Linear(2, 1) for _ in range(3)]
    params, _ = tn.func.stack_module_state(models)
    x = tn.ones(4, 2)

    def gradients(loss):
        one = tn.func.grad(lambda p, x: loss(tn.func.functional_call(models[0], p, (x,))))
        return tn.func.vmap(one, in_dims=(0, None))(params, x)

    linear = gradients(lambda y: y.sum())
    assert not any(gradient.requires_grad for gradient in linear.values())
    assert linear["bias"].numpy().tolist() == [[4.0]] * 3
    assert all(gradient.requires_grad for gradient in gradients(lambda y: y.pow(2).sum()).values())


def test_a_part_without_gradients_tells_vmapped_functions_apart():
    def doubled(a, followed):
        with tn.set_grad_enabled(followed):
            return (a * a) * 1

    gradients = []
    for followed in (True, False, True):
        w = tn.tensor([3.0], requires_grad=True)
        (tn.func.vmap(lambda a, followed=followed: doubled(a, followed) * a)(w)).sum().backward()
        gradients.append(w.grad.item())
    assert gradients == [27.0, 9.0, 27.0]


def under_no_grad(library, x):
    with library.no_grad():
        x.mul_(2)


def through_detach(library, x):
    x.detach().mul_(2)


def to_a_part(library, x):
    with library.no_grad():
        x.view(-1)[0].mul_(2)


@pytest.mark.parametrize("kind", ["leaf", "computed", "plain"])
@pytest.mark.parametrize("written", ["argument", "fresh", "with the closure's"])
@pytest.mark.parametrize("write", [under_no_grad, through_detach, to_a_part])
def test_gradients_pass_by_writes_without_them(write, written, kind):
    def program(library):
        w = library.tensor([1.0, 2.0, 3.0], requires_grad=True)
        k = library.tensor(3.0, requires_grad=True)
        x = {"leaf": w, "computed": w * 2, "plain": w.detach() * 2}[kind]

        def function(x):
            y = x if written == "argument" else x * k if written == "with the closure's" else x * 1
            write(library, y)
            return y * y, y + 1

        squares, sums = library.func.vmap(function)(x)
        total = (squares * 3 + sums).sum()
        found = [squares.tolist(), sums.tolist(), x.tolist(), w.tolist(), total.requires_grad]
        if total.requires_grad:
            gradients = library.autograd.grad(total, (w, k), allow_unused=True)
            found += [None if gradient is None else gradient.tolist() for gradient in gradients]
        return found

    assert program(tn) == program(torch)


def _written_in_part(x):
    y = x * x
    y[0].mul_(2)
    return y.sin()


@pytest.mark.parametrize("function", [lambda x: x**3, lambda x: (x @ x.mT).cumsum(1), _written_in_part])
def test_gradients_of_what_was_computed_before_are_batched(function):
    def run(t):
        x = t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
        y = function(x)
        cotangents = t.arange(float(4 * y.numel())).reshape(4, *y.shape)
        kept = t.vmap(lambda ct: t.autograd.grad(y, x, ct, retain_graph=True)[0])(cotangents)
        tied = t.vmap(lambda ct: t.autograd.grad(y, x, ct, create_graph=True)[0])(cotangents)
        (second,) = t.autograd.grad(tied.sum(), x, retain_graph=True)
        (last,) = t.vmap(lambda ct: t.autograd.grad(y, x, ct))(cotangents)
        asks = [each.requires_grad for each in (kept, tied, last)]
        return asks, [each.detach().numpy() for each in (kept, tied, second, last)]

    (ours, found), (theirs, expected) = run(tn), run(torch)
    assert ours == theirs
    for mine, golden in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, golden, rtol=1e-4)
