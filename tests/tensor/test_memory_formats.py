"""Tensors in `channels_last`: PyTorch's strides and values, whoever makes them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tenfold as tn

MADE: list[Any] = [
    lambda xp, x: x.to(memory_format=xp.channels_last),
    lambda xp, x: x.to(xp.float64, memory_format=xp.channels_last),
    lambda xp, x: x.half(memory_format=xp.channels_last),
    lambda xp, x: x.clone(memory_format=xp.channels_last),
    lambda xp, x: x.contiguous(memory_format=xp.channels_last),
    lambda xp, x: xp.zeros_like(x, memory_format=xp.channels_last),
    lambda xp, x: xp.zeros_like(x, memory_format=xp.channels_last).contiguous(),
    lambda xp, x: x.to(memory_format=xp.channels_last).to(memory_format=xp.contiguous_format),
    lambda xp, x: x.unsqueeze(1).contiguous(memory_format=xp.channels_last_3d),
    lambda xp, x: x[:, :1].to(memory_format=xp.channels_last),
]


def of(xp: Any) -> Any:
    return xp.arange(120, dtype=xp.float32).reshape(2, 3, 4, 5)


@pytest.mark.parametrize("make", MADE)
def test_strides_and_values_are_pytorchs(make):
    found, expected = make(tn, of(tn)), make(torch, of(torch))
    assert found.stride() == expected.stride() and found.dtype.name == str(expected.dtype)[6:]
    assert found.tolist() == expected.tolist()
    for name in ("contiguous_format", "channels_last", "channels_last_3d"):
        asked = getattr(tn, name), getattr(torch, name)
        assert found.is_contiguous(memory_format=asked[0]) == expected.is_contiguous(memory_format=asked[1])


def test_what_is_in_a_format_already_is_given_back_itself():
    x = of(tn).to(memory_format=tn.channels_last)
    assert x.contiguous(memory_format=tn.channels_last) is x and x.to(memory_format=tn.channels_last) is x


def test_a_tensor_in_another_format_has_memory_of_its_own_and_gradients_pass():
    x = of(tn)
    y = x.to(memory_format=tn.channels_last)
    y[0, 0] = -1
    assert x[0, 0, 0, 0].item() == 0 and y[0, 0, 3, 4].item() == -1
    w = tn.ones(1, 2, 2, 2, requires_grad=True)
    (w.to(memory_format=tn.channels_last) * 3).sum().backward()
    assert w.grad is not None and w.grad.flatten().tolist() == [3.0] * 8


def test_a_module_takes_a_format_and_computes_the_same():
    layer = tn.nn.Conv2d(3, 2, 3)
    before = layer(of(tn))
    after = layer.to(memory_format=tn.channels_last)(of(tn).to(memory_format=tn.channels_last))
    assert tn.allclose(before, after)
    with pytest.raises(NotImplementedError, match="memory_format='zigzag' is not supported"):
        layer.to(memory_format="zigzag")
