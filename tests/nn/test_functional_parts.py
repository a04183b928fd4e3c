"""The parts of attention that layers of other people import give what PyTorch's give."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as theirs

import tenfold as tn
import tenfold.nn.functional as ours


def arrays(*shapes):
    numbers = np.random.default_rng(0)
    return [numbers.standard_normal(shape).astype("float32") for shape in shapes]


def close(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("pattern", [(0, 0, 0), (0, 1, 1), (0, 1, 2)])
def test_queries_keys_and_values_are_projected(pattern, with_bias):
    *given, weight, bias = arrays((2, 3, 4), (2, 3, 4), (2, 3, 4), (12, 4), (12,))
    results = []
    for xp, functional in ((tn, ours), (torch, theirs)):
        tensors = [xp.from_numpy(each) for each in given]
        packed = xp.from_numpy(bias) if with_bias else None
        chosen = [tensors[i] for i in pattern]
        results.append(functional._in_projection_packed(*chosen, xp.from_numpy(weight), packed))
        parts = xp.from_numpy(weight).chunk(3)
        results[-1] = [*results[-1], *functional._in_projection(*tensors, *parts)]
    close(*results)


def test_masks_become_numbers_to_add():
    for mask in ([True, False], [0.5, -1.0]):
        found, expected = [
            functional._canonical_mask(xp.tensor(mask), "mask", None, "other", xp.float32)
            for xp, functional in ((tn, ours), (torch, theirs))
        ]
        assert found.tolist() == expected.tolist()
    assert ours._canonical_mask(None, "mask", None, "other", tn.float32) is None
    assert ours._none_or_dtype(tn.ones(1)) is tn.float32
    assert ours._none_or_dtype(None) is None


def test_a_batch_of_one_value_for_each_channel_is_refused():
    for functional in (ours, theirs):
        functional._verify_batch_size([2, 3])
        with pytest.raises(ValueError, match="more than 1 value|more than one value"):
            functional._verify_batch_size([1, 3, 1])
