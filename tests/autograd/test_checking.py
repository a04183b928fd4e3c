"""`gradcheck` and `gradgradcheck`: what they find, and what they need."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn


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


def test_gradcheck_of_a_function_that_reaches_its_input_by_itself():
    layer = tn.nn.Linear(2, 3, dtype=tn.float64)
    before = layer.weight.tolist()
    x = tn.rand(2, 2, dtype=tn.float64)
    assert tn.autograd.gradcheck(lambda *_: layer(x).sin(), tuple(layer.parameters()))
    assert layer.weight.tolist() == before
    weight = layer.weight * 2  # no leaf: the function is called with another tensor in its place
    assert tn.autograd.gradcheck(lambda w: tn.nn.functional.linear(x, w), weight)


def test_gradcheck_says_what_it_needs():
    with pytest.raises(tn.ArgumentError, match="an input that requires a gradient"):
        tn.autograd.gradcheck(lambda x: x * 2, tn.ones(2))
    with pytest.warns(UserWarning, match="float64 or complex128"):
        tn.autograd.gradcheck(lambda x: x * 2, tn.ones(2, requires_grad=True), atol=1e-1)
    with pytest.raises(tn.UnsupportedError, match="batched tangents"):
        tn.autograd.gradcheck(
            lambda x: x * 2, tn.ones(2, requires_grad=True), check_batched_forward_grad=True
        )


def test_gradcheck_compares_tangents_and_batches():
    x = tn.tensor([0.5, 2.0], dtype=tn.float64, requires_grad=True)
    z = tn.tensor([1 + 2j], dtype=tn.complex128, requires_grad=True)
    every = {"check_forward_ad": True, "check_batched_grad": True}
    assert tn.autograd.gradcheck(lambda x, z: (x.sin() * x, z * z.conj() + z.exp()), (x, z), **every)
    assert tn.autograd.gradgradcheck(lambda x: (x**3).sum(), x, check_fwd_over_rev=True)

    class Wrong(HalfOfTheSquare):
        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 7

    only = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False}
    assert not tn.autograd.gradcheck(Wrong.apply, x, raise_exception=False, **only)


@pytest.mark.parametrize("library", [tn, torch])
def test_empty_inputs_pass_in_forward_mode_too(library):
    x = library.rand(0, 1, dtype=library.complex128, requires_grad=True)
    assert library.autograd.gradcheck(lambda x: library.diagonal(x), (x,), check_forward_ad=True)


@pytest.mark.parametrize("library", [tn, torch])
def test_inputs_without_elements_and_outputs_without_dependence_pass(library):
    x = library.ones(4, 0, dtype=library.float64, requires_grad=True)
    assert library.autograd.gradcheck(lambda x: library.pdist(x), (x,))


def test_an_input_that_was_computed_may_be_reached_in_another_way():
    x = tn.tensor([1.0, 2.0], dtype=tn.float64, requires_grad=True)
    y = tn.tensor([3.0, 4.0], dtype=tn.float64, requires_grad=True) * 0.5
    state = {"scale": y}
    assert tn.autograd.gradcheck(lambda x, y: x * state["scale"].clone(), (x, y))
    assert tn.autograd.gradcheck(lambda y: y * y, (y,)) and tn.autograd.gradcheck(lambda z: z * z, (y[1:],))
    assert tn.autograd.gradcheck(lambda z: z * z, (y[:1].expand(3),))
    assert y.tolist() == [1.5, 2]
