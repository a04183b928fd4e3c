"""Attention of `tenfold.nn.functional`: many heads at once, between projections into and out of them."""

from __future__ import annotations

import math

from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


@located
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of query (L, N, E) to key and value (S, N, E) with `num_heads` heads, and its weights

    The dimension N may be missing. A bool mask excludes where it is True; another is added to the scores.

        x, weights = tn.ones(5, 2, 4), tn.ones(12, 4)
        output, attended = F.multi_head_attention_forward(
            x, x, x, 4, 2, weights, None, None, None, False, 0.0, tn.ones(4, 4), None
        )  # [5, 2, 4], [2, 5, 5]
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (each.unsqueeze(1) for each in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    if width != embed_dim_to_check or width % num_heads:
        raise ShapeError(
            f"an embedding of {width} is not {embed_dim_to_check}, or not {num_heads} heads of it"
        )
    if is_causal and attn_mask is None:
        raise ArgumentError("is_causal is a hint about attn_mask, which is needed too")
    size, rows = width // num_heads, batch * num_heads

    padding = additive("key_padding_mask", key_padding_mask, query.dtype)
    hinted = is_causal and padding is None and not need_weights
    mask = None if hinted else additive("attn_mask", attn_mask, query.dtype)
    if mask is not None:
        mask = _checked_mask(mask, length, key.shape[0], rows)

    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, separate)

    if (bias_k is None) != (bias_v is None):
        raise ArgumentError("takes bias_k and bias_v, or neither")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise ArgumentError("a bias cannot be added to static_k or static_v")
        k = aten("cat")((k, bias_k.repeat(1, batch, 1)))
        v = aten("cat")((v, bias_v.repeat(1, batch, 1)))
        mask, padding = _longer(mask), _longer(padding)

    heads = lambda x: x.reshape(x.shape[0], rows, size).transpose(0, 1)
    q = heads(q)
    k = heads(k) if static_k is None else _checked_static("static_k", static_k, rows, size)
    v = heads(v) if static_v is None else _checked_static("static_v", static_v, rows, size)
    if add_zero_attn:
        zero = q.new_zeros((rows, 1, size))
        k, v = aten("cat")((k, zero), 1), aten("cat")((v, zero), 1)
        mask, padding = _longer(mask), _longer(padding)

    keys = k.shape[1]
    if padding is not None:
        if tuple(padding.shape) != (batch, keys):
            raise ShapeError(f"a key_padding_mask of shape {(batch, keys)} is needed, not {padding.shape}")
        is_causal = False
        every_head = padding.reshape(batch, 1, 1, keys).expand(-1, num_heads, -1, -1).reshape(rows, 1, keys)
        mask = every_head if mask is None else mask + every_head
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        attended, weights = _with_weights(q, k, v, mask, dropout_p)
        attended = attended.transpose(0, 1).reshape(length * batch, width)
        weights = weights.reshape(batch, num_heads, length, keys)
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    else:
        if mask is not None:
            mask = (
                mask.unsqueeze(0) if mask.shape[0] == 1 else mask.reshape(batch, num_heads, *mask.shape[1:])
            )
        apart = lambda x: x.reshape(batch, num_heads, *x.shape[1:])
        attended = aten("scaled_dot_product_attention")(
            apart(q), apart(k), apart(v), mask, dropout_p, is_causal and mask is None
        )
        attended = attended.permute(2, 0, 1, 3).reshape(length * batch, width)
        weights = None
    result = aten("linear")(attended, out_proj_weight, out_proj_bias)
    result = result.reshape(length, batch, result.shape[-1])
    return result if batched else result.squeeze(1), weights


def _with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float
) -> tuple[Tensor, Tensor]:
    scores = (q * math.sqrt(1 / q.shape[-1])).bmm(k.transpose(1, 2))
    weights = (scores if mask is None else scores + mask).softmax(-1)
    if dropout_p:
        weights = aten("dropout")(weights, dropout_p, True)
    return weights.bmm(v), weights


def _is_batched(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        raise ShapeError(
            f"takes query, key and value of three dimensions, or two without a batch, not of {query.ndim}, "
            f"{key.ndim} and {value.ndim}"
        )
    batched = query.ndim == 3
    if padding is not None and padding.ndim != query.ndim - 1:
        raise ShapeError(f"a key_padding_mask of {query.ndim - 1} dimensions is needed, not {padding.ndim}")
    if mask is not None and mask.ndim not in (2, 3):
        raise ShapeError(f"an attn_mask of two or three dimensions is needed, not {mask.ndim}")
    if not batched and mask is not None and mask.ndim == 3:
        expected = (heads, query.shape[0], key.shape[0])
        if tuple(mask.shape) != expected:
            raise ShapeError(f"an attn_mask of shape {expected} is needed, not {tuple(mask.shape)}")
    return batched


def additive(name: str, mask: Tensor | None, dtype: DType) -> Tensor | None:
    """A mask as numbers to add: bools exclude where they are True."""
    if mask is None or mask.dtype.is_floating_point:
        return mask
    if mask.dtype is not dtypes.bool_:
        raise DTypeError(f"{name} holds bools or floating-point numbers, not {mask.dtype.name}")
    return aten("zeros_like")(mask, dtype=dtype).masked_fill(mask, float("-inf"))


def _checked_mask(mask: Tensor, length: int, keys: int, rows: int) -> Tensor:
    expected = (length, keys) if mask.ndim == 2 else (rows, length, keys)
    if tuple(mask.shape) != expected:
        raise ShapeError(f"an attn_mask of shape {expected} is needed, not {tuple(mask.shape)}")
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _checked_static(name: str, given: Tensor, rows: int, size: int) -> Tensor:
    if given.ndim != 3 or given.shape[0] != rows or given.shape[2] != size:
        raise ShapeError(f"{name} of shape ({rows}, S, {size}) is needed, not {tuple(given.shape)}")
    return given


def _longer(mask: Tensor | None) -> Tensor | None:
    """A mask with one more key, which nothing excludes."""
    return None if mask is None else aten("constant_pad_nd")(mask, (0, 1), 0.0)


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    separate: tuple[Tensor | None, ...] | None,
) -> list[Tensor]:
    """query, key and value by their weights: three thirds of one, or three of their own."""
    if key.shape[:2] != value.shape[:2] or (separate is None and key.shape != value.shape):
        raise ShapeError(f"the key of shape {tuple(key.shape)} does not fit the value, {tuple(value.shape)}")
    linear, width = aten("linear"), query.shape[-1]
    if separate is None:
        if weight is None:
            raise ArgumentError("in_proj_weight is needed, or use_separate_proj_weight=True")
        if query is key and key is value:  # one product for all three
            return list(linear(query, weight, bias).split(width, -1))
        separate = weight.split(width)
    if any(each is None for each in separate):
        raise ArgumentError("use_separate_proj_weight needs q_proj_weight, k_proj_weight and v_proj_weight")
    biases = (None,) * 3 if bias is None else bias.split(width)
    operands = zip((query, key, value), separate, biases, strict=True)
    return [linear(x, own, b) for x, own, b in operands]
