"""Convolutions over few channels, folded for GPUs: the same sums, in the order of another convolution."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.engines import numpy as tier0
from tenfold.flat.windows import Convolution
from tenfold.runtime.calls import record_call
from tenfold.trace.lower import lower

CASES = {
    "the first layer of a ResNet": ((2, 3, 15, 14), (8, 3, 7, 7), {"stride": 2, "padding": 3}),
    "patches": ((2, 3, 8, 12), (6, 3, 4, 4), {"stride": 4}),
    "one dimension": ((2, 1, 17), (4, 1, 5), {"stride": 3, "padding": 1}),
    "some of the end left over": ((1, 2, 10, 11), (4, 2, 2, 3), {"stride": (3, 2)}),
}


def gradients(x, weight, options):
    x, weight = (each.detach().to(tn.bfloat16).requires_grad_() for each in (x, weight))
    convolve = tn.nn.functional.conv1d if x.dim() == 3 else tn.nn.functional.conv2d
    out = convolve(x, weight, **options)
    return out, *tn.autograd.grad(out.float().square().sum(), [x, weight])


def recorded(case):
    image, kernel, options = CASES[case]
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in (image, kernel)]
    given = tuple([tn.tensor(each) for each in arrays])
    trace = record_call(lambda x, w: gradients(x, w, options), given, {}, tn.Tensor).recording.trace
    return trace, arrays


@pytest.mark.parametrize("case", CASES)
def test_folded_convolutions_give_the_same_sums(case):
    trace, arrays = recorded(case)
    for found, expected in zip(
        tier0.run(lower(trace, kind="cuda"), arrays), tier0.run(lower(trace), arrays), strict=True
    ):
        found, expected = (np.asarray(each, np.float64) for each in (found, expected))
        assert np.linalg.norm(found - expected) <= 1e-2 * np.linalg.norm(expected)


def test_a_folded_convolution_has_no_strides_and_as_many_channels_as_tensor_cores_take():
    trace, _ = recorded("the first layer of a ResNet")
    forward, *_ = [op for op in lower(trace, kind="cuda").ops if isinstance(op, Convolution)]
    assert forward.window_strides == (1, 1)
    assert forward.x.shape[1] == 16 and forward.kernel.shape == (8, 16, 4, 4)


def test_convolutions_over_many_channels_are_not_folded():
    x, weight = tn.ones(2, 16, 9, 9), tn.ones(8, 16, 3, 3)
    trace = record_call(
        lambda x, w: gradients(x, w, {"stride": 2}), (x, weight), {}, tn.Tensor
    ).recording.trace
    forward, *_ = [op for op in lower(trace, kind="cuda").ops if isinstance(op, Convolution)]
    assert forward.window_strides == (2, 2)
