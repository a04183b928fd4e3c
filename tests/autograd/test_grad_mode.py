"""Where gradients are not followed: modes, what is detached, and both inside transformed functions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.utils.checkpoint

import tenfold as tn
from tests.autograd.cases import agree, leaf


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
