"""Second derivatives, forward derivatives and gradients of samples of cross entropy, against PyTorch."""

import numpy as np
import pytest
import torch

import tenfold as tn
import tenfold.nn.functional as F

_SETTINGS = [
    {},
    {"weight": [0.5, 2.0, 1.0, 0.25]},
    {"ignore_index": 1},
    {"label_smoothing": 0.25},
    {"weight": [0.5, 2.0, 1.0, 0.25], "ignore_index": 1},
    {"weight": [0.5, 2.0, 1.0, 0.25], "ignore_index": 1, "label_smoothing": 0.25},
]
_SHAPES = [((3, 4), (3,)), ((2, 4, 3), (2, 3))]


def _losses(shape, places, dtype, reduction, settings):
    """The same scores and the same loss of them, in Tenfold and in PyTorch."""
    chance = np.random.default_rng(5)
    scores = chance.normal(size=shape).astype(dtype)
    scores.flat[0] = scores.max() + 3
    classes = chance.integers(0, 4, places)
    found = []
    for module, functional in (tn, F), (torch, torch.nn.functional):
        more = dict(settings)
        if "weight" in more:
            more["weight"] = module.tensor(more["weight"], dtype=getattr(module, dtype))
        target = module.tensor(classes)

        def loss(x, functional=functional, target=target, more=more):
            return functional.cross_entropy(x, target, reduction=reduction, **more)

        found.append((module, module.tensor(scores), loss))
    return found


def _agree(ours, theirs):
    close = 1e-5 if ours.dtype is tn.float32 else 1e-10
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=close, atol=close)


def _second(module, x, loss):
    x = x.clone().requires_grad_()
    (first,) = module.autograd.grad((loss(x) ** 2).sum(), x, create_graph=True)
    (second,) = module.autograd.grad((first**3).sum(), x, create_graph=True)
    (third,) = module.autograd.grad((second**2).sum(), x)
    return first, second, third


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("settings", _SETTINGS, ids=lambda settings: "-".join(settings) or "plain")
def test_derivatives_of_every_order_are_pytorchs(settings, reduction):
    for shape, places in _SHAPES:
        ours, theirs = _losses(shape, places, "float64", reduction, settings)
        for mine, expected in zip(_second(*ours), _second(*theirs), strict=True):
            _agree(mine, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("settings", _SETTINGS, ids=lambda settings: "-".join(settings) or "plain")
def test_the_hessian_and_the_forward_derivative_are_pytorchs(settings, dtype):
    ours, theirs = _losses((3, 4), (3,), dtype, "mean", settings)
    mine, expected = (module.func.hessian(loss)(x) for module, x, loss in (ours, theirs))
    _agree(mine, expected)
    for mine, expected in zip(
        *(module.func.jvp(loss, (x,), (x * 2 + 1,)) for module, x, loss in (ours, theirs)), strict=True
    ):
        _agree(mine, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_each_sample_is_pytorchs(weighted):
    scores = np.random.default_rng(1).normal(size=(5, 4))
    found = []
    for module, functional in (tn, F), (torch, torch.nn.functional):
        weight = module.tensor([0.5, 2.0, 1.0, 0.25], dtype=module.float64) if weighted else None

        def loss(x, target, functional=functional, weight=weight):
            return functional.cross_entropy(x[None], target[None], weight, reduction="sum")

        x, target = module.tensor(scores), module.tensor([0, 3, 1, 1, 2])
        each = module.func.vmap(module.func.grad(loss))(x, target)
        curved = module.func.vmap(module.func.hessian(loss))(x, target)
        found.append((each, curved))
    for mine, expected in zip(*found, strict=True):
        _agree(mine, expected)


def test_the_second_derivative_is_exact_for_scores_of_any_size():
    x = tn.tensor([[1e8, 1e8, -1e8]], requires_grad=True)
    (first,) = tn.autograd.grad(F.cross_entropy(x, tn.tensor([0])), x, create_graph=True)
    assert first.tolist() == [[-0.5, 0.5, 0.0]]
    (second,) = tn.autograd.grad(first[0, 1], x)
    assert second.tolist() == [[-0.25, 0.25, 0.0]]
