"""A call with arguments like those of an earlier one finds its callee at once, and means the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tenfold as tn

CALLS = [
    lambda L, x: L.ones(2, 3),
    lambda L, x: L.ones((2, 3)),
    lambda L, x: L.full((2,), True),
    lambda L, x: L.full((2,), 1),
    lambda L, x: L.full((2,), 1.0),
    lambda L, x: L.full((2,), 0.0),
    lambda L, x: L.full((2,), -0.0),
    lambda L, x: L.full((2,), math.nan),
    lambda L, x: L.zeros(3, dtype=L.int64),
    lambda L, x: L.zeros(3, dtype=L.float32),
    lambda L, x: L.zeros(3, dtype=float),
    lambda L, x: L.arange(5),
    lambda L, x: L.arange(0, 1, 0.25),
    lambda L, x: L.ones_like(x, dtype=L.float64),
    lambda L, x: x.sum(dim=1),
    lambda L, x: x.sum(dim=1, keepdim=True),
    lambda L, x: x.sum((0, 1)),
    lambda L, x: x.sum(1, dtype=L.float64),
    lambda L, x: L.nn.functional.gelu(x, approximate="tanh"),
    lambda L, x: L.nn.functional.gelu(x, approximate="none"),
    lambda L, x: L.softmax(x, dim=0),
    lambda L, x: L.softmax(x, dim=1),
    lambda L, x: L.add(x, 2, alpha=3),
    lambda L, x: L.add(x, 2, alpha=3.5),
    lambda L, x: x.add(other=2),
]


@pytest.mark.parametrize("rounds", range(3))
def test_a_call_gives_the_same_the_first_time_and_later(rounds):
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    ours, theirs = tn.tensor(numbers), torch.tensor(numbers)
    for call in CALLS:
        result, wanted = call(tn, ours), call(torch, theirs)
        assert str(result.dtype).rpartition(".")[2] == str(wanted.dtype).rpartition(".")[2]
        assert result.numpy().dtype == wanted.numpy().dtype
        np.testing.assert_allclose(result.numpy(), wanted.numpy(), rtol=1e-6)
        assert (np.signbit(result.numpy()) == np.signbit(wanted.numpy())).all()


def test_a_new_tensor_requires_gradients_each_time_it_is_asked_to():
    for wanted in (False, True, True, False):
        assert tn.ones(3, requires_grad=wanted).requires_grad is wanted
        assert not tn.ones(3).requires_grad


def test_a_new_tensor_lies_on_the_default_device():
    assert tn.zeros(2, 2).device.type == "cpu"
    with tn.device("meta"):
        assert tn.zeros(2, 2).device.type == "meta"
    assert tn.zeros(2, 2).device.type == "cpu"
    assert tn.zeros(2, 2, device="meta").device.type == "meta"


def test_a_new_tensor_has_the_default_dtype():
    assert tn.zeros(2, 5).dtype is tn.float32
    tn.set_default_dtype(tn.float64)
    try:
        assert tn.zeros(2, 5).dtype is tn.float64
    finally:
        tn.set_default_dtype(tn.float32)


def test_a_result_goes_to_out_each_time():
    for number in (1.0, 2.0, 3.0):
        result = tn.zeros(2)
        assert tn.add(tn.full((2,), number), 1, out=result) is result
        assert result.tolist() == [number + 1] * 2


def test_gradients_flow_through_calls_by_keyword():
    for _ in range(3):
        x = tn.ones(2, 3, requires_grad=True)
        x.sum(dim=1, keepdim=True).square().sum().backward()
        assert x.grad.tolist() == [[6.0] * 3] * 2


def test_a_call_on_three_tensors_follows_gradients_of_each_and_refuses_other_devices():
    linear = tn.nn.functional.linear
    for _ in range(3):
        for tracked in range(3):
            tensors = [tn.ones(2, 4), tn.ones(3, 4), tn.ones(3)]
            assert not linear(*tensors).requires_grad
            tensors[tracked].requires_grad_()
            linear(*tensors).sum().backward()
            assert [tensor.grad is not None for tensor in tensors] == [i == tracked for i in range(3)]
    with pytest.raises(tn.TenfoldError, match="meta|device"):
        linear(tn.ones(2, 4), tn.ones(3, 4, device="meta"), tn.ones(3)).tolist()
