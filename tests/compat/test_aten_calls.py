"""Calls of `torch.ops.aten` as generated programs write them: numbers for dtypes, masks among indices, `out=`
of another shape, and views that share memory though their schema does not say so."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import tenfold as tn

CALLS = {
    "a number for a dtype": lambda t: t.ops.aten.to(t.ones(2), 5),
    "a number for a dtype of one overload": lambda t: t.ops.aten.to.dtype(t.ones(2), 3),
    "a number for a dtype and a layout": lambda t: t.ops.aten.zeros([2], dtype=6, layout=0),
    "an index by mask": lambda t: t.ops.aten.index(
        t.arange(10.0).reshape(5, 2), (t.arange(5) > 2, t.tensor([0, 1]))
    ),
    "a mask beside an index": lambda t: t.ops.aten.index_put(
        t.zeros(5, 5), (t.tensor([0, 2, 4]), t.arange(5) > 1), t.arange(3.0)
    ),
    "two masks": lambda t: t.ops.aten.index_put(
        t.zeros(3, 4), (t.arange(3) < 2, t.arange(4) > 1), t.arange(2.0), True
    ),
    "a mask alone": lambda t: t.ops.aten.index_put(t.zeros(3, 4), (t.arange(3) < 2,), t.ones(4)),
    "arange into another shape": lambda t: t.arange(start=1, end=13, out=t.zeros(3, 4)),
    "arange.start_out": lambda t: t.ops.aten.arange.start_out(1, 5, out=t.zeros(2, 2)),
    "linspace into another shape": lambda t: t.linspace(0, 1, 4, out=t.zeros(2, 2)),
    "as_strided after _unsafe_view": lambda t: t.ops.aten.as_strided(
        t.ops.aten._unsafe_view(t.arange(24.0).reshape(3, 2, 4)[1:], [4, 4]), (2, 2), (8, 1), 0
    ),
    "a dimension expanded in all three": lambda t: t.ops.aten._trilinear(
        *[t.ones(2, 3, 6)] * 3, [0], [0], [0], [2], 0
    ),
    "the functions of torch._C._nn": lambda t: t._C._nn.gelu(t.arange(4.0)),
    "a pooling of torch._C._nn": lambda t: t._C._nn.avg_pool2d(t.arange(16.0).reshape(1, 1, 4, 4), [2, 2]),
    "a whole number as a tensor": lambda t: t.ops.prim.NumToTensor.Scalar(3),
    "a real number as a tensor": lambda t: t.ops.prim.NumToTensor.Scalar(1.5),
    "a truth as a tensor": lambda t: t.ops.prim.NumToTensor.Scalar(True),
    "numbers for a dtype and a memory format": lambda t: t.ops.aten._to_copy(
        t.ones(2, 3), dtype=7, layout=0, non_blocking=False, memory_format=0
    ),
    "a number for the dtype of a fill": lambda t: t.ops.aten.full(
        [2], 3, dtype=4, layout=0, pin_memory=False
    ),
    "a loss's gradient of one sample": lambda t: t.ops.aten.nll_loss_backward(
        t.tensor(2.0), t.arange(4.0), t.tensor(2), None, 1, -100, t.tensor(1.0)
    ),
    "a weighted loss's gradient of one sample": lambda t: t.ops.aten.nll_loss_backward(
        t.tensor(2.0), t.arange(4.0), t.tensor(2), t.arange(4.0), 2, -100, t.tensor(2.0)
    ),
    "as_strided after a slice and a transpose": lambda t: t.ops.aten.as_strided(
        t.arange(24.0).reshape(4, 6)[1:, 2:].t(), (2, 3), (6, 2), 8
    ),
    "None for no dimensions": lambda t: t.amax(t.arange(6.0).reshape(2, 3), None, True),
    "None for the stride of a pooling": lambda t: t.max_pool2d(t.arange(16.0).reshape(1, 4, 4), 2, None),
    "a mask of uint8": lambda t: t.ops.aten.index_put(
        t.zeros(3, 2), (t.tensor([1, 0, 1], dtype=t.uint8),), t.ones(2, 2), True
    ),
    "a mask of uint8 beside indices": lambda t: t.ops.aten.index(
        t.arange(6.0).reshape(3, 2), (t.tensor([1, 0, 1], dtype=t.uint8), t.tensor([1, 0]))
    ),
    "a mask of two dimensions beside nothing": lambda t: t.ops.aten.index_put(
        t.zeros(2, 3, 2), (None, t.tensor([[True, False], [False, True], [True, True]])), t.arange(4.0)
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_the_call_gives_what_pytorch_gives(call):
    ours, theirs = call(tn), call(torch)
    assert ours.dtype.name == str(theirs.dtype).partition(".")[2]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_a_write_through_unsafe_view_reaches_what_it_views():
    results = []
    for t in (tn, torch):
        x = t.zeros(2, 3)
        t.ops.aten._unsafe_view(x, [6])[4] = 1.0
        results.append(x.tolist())
    assert results[0] == results[1] == [[0, 0, 0], [0, 1, 0]]


def test_ops_and_their_overloads_can_be_copied():
    assert copy.deepcopy(tn.ops.aten.add.Tensor).name() == "aten::add.Tensor"
    assert copy.deepcopy(tn.ops.aten.add)(1, 2) == 3


def test_copies_of_an_overload_are_the_overload():
    packet = tn.ops.aten._softmax_backward_data
    assert copy.deepcopy(packet) is packet
    assert copy.deepcopy([packet.default])[0] is packet.default
