"""Attention against PyTorch: values and gradients with every kind of mask, and many heads at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, TenfoldError
from tenfold.nn import functional as F
from tests.nn.comparing import Call, Drawn, compare

SEEN = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)


def drawn(*batch: int, heads: int | None = None) -> Drawn:
    shared = (*batch[:-1], heads or batch[-1]) if batch else ()
    found = Drawn().normal(q=(*batch, 4, 8), k=(*shared, 5, 8), v=(*shared, 5, 6), m=(4, 5))
    found.arrays["seen"] = SEEN
    found.arrays["nothing"] = SEEN & np.array([[1], [0], [1], [1]], bool)
    return found


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (lambda F, t: F.scaled_dot_product_attention(t.q, t.k, t.v), drawn(2, 3)),
        (lambda F, t: F.scaled_dot_product_attention(t.q, t.k, t.v, t.m), drawn(2, 3)),
        (lambda F, t: F.scaled_dot_product_attention(t.q, t.k, t.v, t.seen), drawn(2, 3)),
        (lambda F, t: F.scaled_dot_product_attention(t.q, t.k, t.k, t.nothing.detach()), drawn(2, 3)),
        (lambda F, t: F.scaled_dot_product_attention(t.q, t.k, t.v, is_causal=True), drawn(2, 3)),
        (lambda F, t: F.scaled_dot_product_attention(t.q, t.k, t.v, scale=0.2), drawn()),
        (lambda F, t: F.scaled_dot_product_attention(t.q, t.k[:1], t.v[:1]), drawn(2, 3)),
        (
            lambda F, t: F.scaled_dot_product_attention(
                t.q, t.k, t.k, t.m.expand(2, 6, 4, 5), enable_gqa=True
            ),
            drawn(2, 6, heads=3),
        ),
        (
            lambda F, t: F.scaled_dot_product_attention(t.q, t.k, t.v, is_causal=True, enable_gqa=True),
            drawn(2, 6, heads=2),
        ),
    ],
)
def test_attention_is_pytorchs(call: Call, given: Drawn) -> None:
    compare(call, given)


def test_flash_attention_is_pytorchs_on_heads_of_any_size() -> None:
    arrays = {k: v.astype(np.float32) for k, v in drawn(2, 3).arrays.items()}
    theirs = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *[torch.tensor(arrays[name]) for name in ("q", "k", "k")], attn_mask=torch.tensor(arrays["m"])
    )
    ours = tn._scaled_dot_product_flash_attention_for_cpu(
        *[tn.tensor(arrays[name]) for name in ("q", "k", "k")], attn_mask=tn.tensor(arrays["m"])
    )
    tn.eval(*ours)
    for mine, golden in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.numpy(), golden.numpy(), 1e-5, 1e-5)


def test_half_precision_scores_are_float32() -> None:
    q = tn.full((1, 1, 1, 64), 30.0).to(tn.float16)
    k = aten_cat(q, q * 0.5)
    result = F.scaled_dot_product_attention(q, k, k)  # the scores, 7200 and 3600, times 8 overflow float16
    assert result.dtype is tn.float16
    np.testing.assert_allclose(result.numpy().astype(np.float32), 30.0)


def aten_cat(*parts: tn.Tensor) -> tn.Tensor:
    return tn.cat(parts, 2)


def test_dropout_keeps_the_mean_and_follows_the_seed() -> None:
    q, k, v = tn.zeros(1, 1, 200, 4), tn.zeros(1, 1, 50, 4), tn.ones(1, 1, 50, 4)
    tn.manual_seed(3)
    first = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    tn.manual_seed(3)
    second = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    assert (first == second).all().item()
    assert abs(first.mean().item() - 1) < 0.05
    assert first.std().item() > 0.05


# Many heads


def heads(batch: int | None = 2, key: int = 6, **more: tuple[int, ...]) -> Drawn:
    n = () if batch is None else (batch,)
    found = Drawn().normal(q=(4, *n, 6), k=(5, *n, key), v=(5, *n, key), w=(18, 6), b=(18,), o=(6, 6), c=(6,))
    found.normal(**more)
    found.arrays["seen"] = ~SEEN
    found.arrays["pad"] = np.zeros((*n, 5), bool)
    found.arrays["pad"][..., 3:] = True
    return found


def attend(F, t, *args, bias=(None, None), zero=False, **kwargs):
    result, weights = F.multi_head_attention_forward(
        *(args or (t.q, t.k, t.v)), 6, 3, t.w, t.b, *bias, zero, 0.0, t.o, t.c, **kwargs
    )
    return result if weights is None else (result, weights)


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (attend, heads()),
        (lambda F, t: attend(F, t, t.q, t.q, t.q), heads()),
        (lambda F, t: attend(F, t, average_attn_weights=False, attn_mask=t.seen), heads()),
        (lambda F, t: attend(F, t, key_padding_mask=t.pad), heads()),
        (lambda F, t: attend(F, t, key_padding_mask=t.pad), heads(None)),
        (lambda F, t: attend(F, t, need_weights=False, attn_mask=t.m), heads(m=(4, 5))),
        (
            lambda F, t: attend(F, t, need_weights=False, attn_mask=t.m, key_padding_mask=t.pad),
            heads(m=(6, 4, 5)),
        ),
        (lambda F, t: attend(F, t, need_weights=False, attn_mask=t.m, is_causal=True), heads(m=(4, 5))),
        (
            lambda F, t: attend(F, t, bias=(t.x, t.y), zero=True, attn_mask=t.m, key_padding_mask=t.pad),
            heads(m=(4, 5), x=(1, 1, 6), y=(1, 1, 6)),
        ),
        (
            lambda F, t: attend(
                F, t, use_separate_proj_weight=True, q_proj_weight=t.x, k_proj_weight=t.y, v_proj_weight=t.z
            ),
            heads(key=3, x=(6, 6), y=(6, 3), z=(6, 3)),
        ),
        (lambda F, t: attend(F, t, static_k=t.x, static_v=t.y), heads(x=(6, 7, 2), y=(6, 7, 2))),
    ],
)
def test_many_heads_are_pytorchs(call: Call, given: Drawn) -> None:
    compare(call, given)


X = tn.ones(2, 3, 4, 8)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.scaled_dot_product_attention(X, X.double(), X), DTypeError),
        (lambda: F.scaled_dot_product_attention(X, X[..., :4], X), ShapeError),
        (lambda: F.scaled_dot_product_attention(X, X, X, tn.ones(4, 4).int()), DTypeError),
        (lambda: F.scaled_dot_product_attention(X, X, X, tn.ones(4, 4), is_causal=True), ArgumentError),
        (lambda: F.scaled_dot_product_attention(X, X, X, tn.ones(3, 4)), ShapeError),
        (lambda: F.scaled_dot_product_attention(X, X, X, dropout_p=2.0), ArgumentError),
        (lambda: F.scaled_dot_product_attention(X, X[:, :2], X[:, :2], enable_gqa=True), ShapeError),
        (lambda: attend(F, Ones(), X, X, X), ShapeError),
        (lambda: attend(F, Ones(), attn_mask=tn.ones(3, 5)), ShapeError),
        (lambda: attend(F, Ones(), attn_mask=tn.ones(4, 5).int()), DTypeError),
        (lambda: attend(F, Ones(), is_causal=True), ArgumentError),
        (lambda: attend(F, Ones(), bias=(tn.ones(1, 1, 6), None)), ArgumentError),
    ],
)
def test_wrong_arguments_are_refused(call, error: type[TenfoldError]) -> None:
    with pytest.raises(error):
        call()


class Ones:
    def __init__(self) -> None:
        self.__dict__.update({k: tn.tensor(v) for k, v in heads().arrays.items()})


def test_whichever_kernel_is_named_attention_is_the_same() -> None:
    x = tn.tensor(np.random.default_rng(0).normal(size=(1, 2, 3, 4)))
    expected = tn.nn.functional.scaled_dot_product_attention(x, x, x)
    backend = tn.nn.attention.SDPBackend
    for named in (backend.MATH, [backend.FLASH_ATTENTION, backend.MATH]):
        with tn.nn.attention.sdpa_kernel(named):
            assert (tn.nn.functional.scaled_dot_product_attention(x, x, x) == expected).all()
    with pytest.raises(tn.ArgumentError, match="takes an SDPBackend"), tn.nn.attention.sdpa_kernel(["math"]):
        pass


def test_shared_heads_of_half_precision_give_what_pytorch_gives():
    random = np.random.default_rng(0)
    q, k, v = (random.normal(size=(2, heads, 5, 8)).astype(np.float32) for heads in (6, 2, 2))
    results = []
    for module in (tn, torch):
        inputs = [module.tensor(x).to(module.bfloat16).requires_grad_() for x in (q, k, v)]
        out = module.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=True)
        gradients = module.autograd.grad(out.float().square().sum(), inputs)
        results.append([x.detach().float().numpy() for x in (out, *gradients)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("batch_first, shape", [(True, (0, 5, 8)), (False, (5, 0, 8)), (True, (2, 0, 8))])
@pytest.mark.parametrize("need_weights", [False, True])
def test_attention_of_nothing_is_nothing(batch_first, shape, need_weights):
    seen = []
    for t in (tn, torch):
        attention = t.nn.MultiheadAttention(8, 2, batch_first=batch_first)
        x = t.ones(shape)
        result, weights = attention(x, x, x, need_weights=need_weights)
        seen.append([tuple(result.shape), None if weights is None else tuple(weights.shape)])
    assert seen[0] == seen[1]
