"""Attention as one kernel: what cuDNN is given; on a machine with a GPU, what it gives."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.flat.structured import CustomCall
from tenfold.nn import functional
from tenfold.runtime.calls import record_call
from tenfold.trace.lower import lower

gpu = pytest.mark.skipif(not tn.cuda.is_available(), reason="there is no GPU here")


def attention(query, key, value):
    inputs = [each.detach().to(tn.bfloat16).requires_grad_() for each in (query, key, value)]
    out = functional.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=True)
    return out, *tn.autograd.grad(out.float().square().sum(), inputs)


def heads():
    random = np.random.default_rng(0)
    return [random.normal(size=(2, count, 64, 16)).astype(np.float32) for count in (6, 2, 2)]


def test_cudnn_reads_shared_heads_where_they_are():
    given = tuple([tn.tensor(each) for each in heads()])
    function = lower(record_call(attention, given, {}, tn.Tensor).recording.trace, kind="cuda")
    forward, backward = [op for op in function.ops if isinstance(op, CustomCall)]
    shared, own = (2, 64, 2, 16), (2, 64, 6, 16)
    assert [each.shape for each in forward.inputs] == [own, shared, shared]
    assert [each.shape for each in backward.result_types[:3]] == [
        (2, 6, 64, 16),
        (2, 2, 64, 16),
        (2, 2, 64, 16),
    ]


@gpu
def test_a_gpu_gives_what_the_cpu_gives():
    expected = tn.compile(attention)(*[tn.tensor(each) for each in heads()])
    found = tn.compile(attention)(*[tn.tensor(each, device="cuda") for each in heads()])
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = (each.detach().cpu().double().numpy() for each in (ours, theirs))
        assert np.linalg.norm(ours - theirs) <= 1e-2 * np.linalg.norm(theirs)
