"""Normalisations of nn.functional against PyTorch: values, gradients, and running statistics in place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError, ShapeError, TenfoldError
from tenfold.nn import functional as F
from tests.nn.comparing import Call, Drawn, compare

IMAGE = (3, 4, 5, 2)


def channels(*shape: int) -> Drawn:
    return Drawn().normal(x=shape, w=(shape[1],), b=(shape[1],), m=(shape[1],)).uniform(0.5, 2, v=(shape[1],))


@pytest.mark.parametrize(
    ("call", "drawn"),
    [
        (lambda F, t: F.layer_norm(t.x, (5,), t.w, t.b), Drawn().normal(x=(3, 5), w=(5,), b=(5,))),
        (lambda F, t: F.layer_norm(t.x, (4, 5), t.w), Drawn().normal(x=(3, 4, 5), w=(4, 5))),
        (lambda F, t: F.layer_norm(t.x, [5], eps=1e-2), Drawn().normal(x=(2, 3, 5))),
        (lambda F, t: F.rms_norm(t.x, (5,), t.w), Drawn().normal(x=(3, 5), w=(5,))),
        (lambda F, t: F.rms_norm(t.x, (3, 5), eps=0.5), Drawn().normal(x=(2, 3, 5))),
        (lambda F, t: F.group_norm(t.x, 2, t.w, t.b), channels(*IMAGE)),
        (lambda F, t: F.group_norm(t.x, 4), channels(*IMAGE)),
        (lambda F, t: F.instance_norm(t.x, weight=t.w, bias=t.b), channels(*IMAGE)),
        (
            lambda F, t: F.instance_norm(t.x, t.m.detach(), t.v.detach(), use_input_stats=False),
            channels(*IMAGE),
        ),
        (lambda F, t: F.batch_norm(t.x, None, None, t.w, t.b, True), channels(*IMAGE)),
        (lambda F, t: F.batch_norm(t.x, None, None, None, None, True), channels(6, 3)),
        (lambda F, t: F.batch_norm(t.x, t.m.detach(), t.v.detach(), t.w, t.b), channels(*IMAGE)),
        (lambda F, t: F.local_response_norm(t.x, 3), channels(2, 6, 4)),
        (lambda F, t: F.local_response_norm(t.x, 2, 0.5, 0.6, 2.0), channels(2, 5, 3, 2)),
        (lambda F, t: F.local_response_norm(t.x, 4, 0.5), channels(2, 5, 3)),
    ],
)
def test_values_and_gradients_are_pytorchs(call: Call, drawn: Drawn) -> None:
    compare(call, drawn)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("momentum", [0.1, 1.0])
def test_running_statistics_move_in_place(name: str, momentum: float) -> None:
    drawn = channels(*IMAGE).arrays
    theirs = {k: torch.tensor(v) for k, v in drawn.items()}
    ours = {k: tn.tensor(v) for k, v in drawn.items()}
    mean = ours["m"]
    for _ in range(2):
        getattr(torch.nn.functional, name)(
            theirs["x"], theirs["m"], theirs["v"], None, None, True, momentum=momentum
        )
        getattr(F, name)(ours["x"], ours["m"], ours["v"], None, None, True, momentum=momentum)
    np.testing.assert_allclose(mean.numpy(), theirs["m"].numpy(), 1e-7)
    np.testing.assert_allclose(ours["v"].numpy(), theirs["v"].numpy(), 1e-7)


def test_a_compiled_step_moves_running_statistics() -> None:
    mean, var = tn.zeros(3), tn.ones(3)
    step = tn.compile(lambda x: F.batch_norm(x, mean, var, training=True))
    x = tn.arange(12.0).reshape(4, 3)
    step(x)
    step(x)
    reference = torch.zeros(3), torch.ones(3)
    for _ in range(2):
        torch.nn.functional.batch_norm(torch.arange(12.0).reshape(4, 3), *reference, training=True)
    np.testing.assert_allclose(mean.numpy(), reference[0].numpy(), 1e-6)
    np.testing.assert_allclose(var.numpy(), reference[1].numpy(), 1e-6)


def test_running_statistics_carry_no_gradient() -> None:
    x, mean, var = tn.ones(4, 3, requires_grad=True), tn.zeros(3), tn.ones(3)
    F.batch_norm(x, mean, var, training=True)
    assert not mean.requires_grad and not var.requires_grad


def test_half_inputs_take_float_parameters() -> None:
    x = tn.arange(12.0).reshape(4, 3).to(tn.bfloat16)
    assert F.layer_norm(x, (3,), tn.ones(3), tn.ones(3)).dtype is tn.bfloat16
    assert F.batch_norm(x, tn.zeros(3), tn.ones(3), tn.ones(3)).dtype is tn.bfloat16


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.batch_norm(tn.ones(1, 3), None, None, training=True), ShapeError),
        (lambda: F.batch_norm(tn.ones(2, 3), None, None), ArgumentError),
        (lambda: F.batch_norm(tn.ones(2, 3), None, None, training=True, eps=0), ArgumentError),
        (lambda: F.batch_norm(tn.ones(2, 3), tn.ones(3), None, training=True), ArgumentError),
        (lambda: F.batch_norm(tn.ones(2, 3), tn.ones(2), tn.ones(2)), ShapeError),
        (lambda: F.batch_norm(tn.ones(2, 3).double(), tn.ones(3), tn.ones(3)), TenfoldError),
        (lambda: F.instance_norm(tn.ones(2, 3, 1)), ShapeError),
        (lambda: F.instance_norm(tn.ones(2, 3, 4), use_input_stats=False), ArgumentError),
        (lambda: F.layer_norm(tn.ones(2, 3), (2,)), ShapeError),
        (lambda: F.group_norm(tn.ones(2, 3), 2), ArgumentError),
        (lambda: F.group_norm(tn.ones(1, 2, 1), 2), ShapeError),
        (lambda: F.local_response_norm(tn.ones(2, 3), 2), ShapeError),
    ],
)
def test_wrong_arguments_are_refused(call, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_an_empty_batch_has_empty_second_derivatives():
    x = tn.zeros(0, 3, requires_grad=True)
    (slope,) = tn.autograd.grad(tn.nn.BatchNorm1d(3)(x).sum(), x, create_graph=True)
    assert tn.autograd.grad(slope.sum(), x)[0].shape == (0, 3)
