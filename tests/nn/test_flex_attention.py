"""flex_attention agrees with PyTorch's, which computes it eagerly here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.attention.flex_attention as theirs

import tenfold as tn
from tenfold.nn import flex_attention as ours

B, H, L, S, E = 2, 4, 6, 8, 5


def given(m: Any, heads: int = H) -> list[Any]:
    random = np.random.RandomState(0)
    shapes = (B, H, L, E), (B, heads, S, E), (B, heads, S, E)
    return [m.tensor(random.randn(*shape).astype("float32")) for shape in shapes]


SCORES = {
    "none": None,
    "relative": lambda s, b, h, q, k: s + (q - k),
    "by head": lambda s, b, h, q, k: s * (h + 1) * 0.1 + b,
    "capped": lambda s, b, h, q, k: 2.0 * (s / 2.0).tanh(),
}
MASKS = {
    "none": None,
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q - k <= 2) & (q >= k),
    "nothing for the first": lambda b, h, q, k: q > k,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_scores_and_masks_agree_with_pytorch(score, mask):
    found = []
    for m, module in ((tn, ours), (torch, theirs)):
        q, k, v = given(m)
        block = MASKS[mask] and module.create_block_mask(MASKS[mask], None, None, L, S, device="cpu")
        found.append(module.flex_attention(q, k, v, SCORES[score], block).numpy())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def test_gradients_are_those_of_attention_with_a_mask():
    """PyTorch differentiates its own only on a GPU."""
    q, k, v = [each.requires_grad_() for each in given(tn)]
    causal = ours.create_block_mask(MASKS["causal"], None, None, L, S)
    (ours.flex_attention(q, k, v, block_mask=causal) ** 2).sum().backward()
    found = [each.requires_grad_() for each in given(torch)]
    mask = torch.arange(L)[:, None] >= torch.arange(S)
    (torch.nn.functional.scaled_dot_product_attention(*found, attn_mask=mask) ** 2).sum().backward()
    for mine, expected in zip((q, k, v), found):
        np.testing.assert_allclose(mine.grad.numpy(), expected.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_few_heads_of_keys_serve_many_of_queries():
    results = []
    for m, module in ((tn, ours), (torch, theirs)):
        q, k, v = given(m, 2)
        results.append(module.flex_attention(q, k, v, enable_gqa=True).numpy())
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)
    with pytest.raises(tn.ArgumentError, match="enable_gqa"):
        ours.flex_attention(*given(tn, 2))


def test_a_block_mask_tells_which_blocks_are_seen():
    causal = lambda b, h, q, k: q >= k
    mine = ours.create_block_mask(causal, 1, 1, 256, 256, device="cpu")
    expected = theirs.create_block_mask(causal, 1, 1, 256, 256, device="cpu")
    np.testing.assert_array_equal(mine.to_dense().numpy(), expected.to_dense().numpy())
    assert mine.sparsity() == pytest.approx(expected.sparsity())
    np.testing.assert_array_equal(
        ours.create_mask(causal, 1, 1, 4, 4).numpy(), theirs.create_mask(causal, 1, 1, 4, 4, "cpu").numpy()
    )
