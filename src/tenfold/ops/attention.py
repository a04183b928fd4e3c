"""Scaled dot-product attention: softmax(query · keyᵀ · scale + mask) · value.

There is one batched product for the scores and one for the values. Batch and heads stay dimensions of their
own, so that a mesh may split either. Heads that share a key are further rows of its query. Scores of half
types are float32.
"""

from __future__ import annotations

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.flat.remat import derived
from tenfold.ops import fused_attention, row_attention
from tenfold.ops.random import bits, chance, require
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written

LOWEST = float("-inf")


def _softmax_rule(cotangents, results, scores):
    chances, _ = results
    to_chances, to_log_sum = cotangents
    found = None
    if to_chances is not None:
        found = chances * (to_chances - flat.sum(to_chances * chances, (-1,), keepdim=True))
    if to_log_sum is not None:
        part = chances * flat.unsqueeze(to_log_sum, -1)
        found = part if found is None else found + part
    return (found,)


@flat.differentiated(_softmax_rule)
def _softmax(scores: Value) -> tuple[Value, Value]:
    """exp(scores) over their sum along the last dimension, 0 where all is masked; and the log of that sum."""
    if not scores.shape[-1]:
        return scores, flat.full(scores.shape[:-1], 0, scores.dtype)
    largest = flat.reduce(scores, "max", (-1,), keepdim=True)
    masked = flat.eq(largest, LOWEST)
    largest = flat.where(masked, 0, largest)
    powers = flat.exp(scores - largest)
    total = flat.sum(powers, (-1,), keepdim=True)
    total = flat.where(masked, 1, total)
    return powers / total, flat.squeeze(flat.log(total) + largest, -1)


class _Attention:
    """The operands as batches of matrices: query (…, G · L, E), key (…, S, E), value (…, S, V)."""

    def __init__(self, query: Value, key: Value, value: Value, scale: float | None, grouped: bool):
        for each in (query, key, value):
            if each.rank < 2:
                raise ShapeError(f"attention takes at least two dimensions, not {each.type}")
            if each.dtype is not query.dtype or not each.dtype.is_floating_point or each.dtype.itemsize < 2:
                raise DTypeError(
                    f"attention takes query, key and value of one float dtype, not {query.dtype.name}, "
                    f"{key.dtype.name} and {value.dtype.name}",
                    help="convert them with .to(dtype)",
                )
        if key.shape[-1] != query.shape[-1] or value.shape[-2] != key.shape[-2]:
            raise ShapeError(f"attention: the key {key.type} does not fit {query.type} or {value.type}")
        self.dtype = query.dtype
        self.wide = dtypes.float32 if query.dtype.itemsize == 2 else query.dtype
        self.length, self.width = query.shape[-2:]
        self.keys = key.shape[-2]
        if scale is None:
            scale = 1 / math.sqrt(self.width) if self.width else 1.0
        self.group = self._grouped_heads(query, key, value) if grouped else 1
        if self.group > 1:
            heads = query.shape[-3] // self.group
            query = flat.reshape(query, (*query.shape[:-3], heads, self.group * self.length, self.width))
        batch = flat.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        self.batch = (*batch[:-1], batch[-1] * self.group) if self.group > 1 else batch
        self.leading = batch
        self.query, self.key, self.value = (
            flat.broadcast_to(each, (*batch, *each.shape[-2:])) for each in (query, key, value)
        )
        self.scale = scale

    def _grouped_heads(self, query: Value, key: Value, value: Value) -> int:
        if min(query.rank, key.rank, value.rank) < 3 or key.shape[-3] != value.shape[-3]:
            raise ShapeError("attention: enable_gqa needs a dimension of heads, the same for key and value")
        if not key.shape[-3] or query.shape[-3] % key.shape[-3]:
            raise ShapeError(
                f"attention: {key.shape[-3]} heads of key and value do not divide {query.shape[-3]} of query"
            )
        return query.shape[-3] // key.shape[-3]

    def product(self, x: Value, y: Value, x_dim: int, y_dim: int, dtype: dtypes.DType) -> Value:
        """Sums of products over one of the last two dimensions of each."""
        rows = len(self.leading)
        every = range(rows)
        return flat.dot_general(x, y, ((rows + x_dim,), (rows + y_dim,)), (every, every), dtype)

    def scores(self, mask: Value | None, causal: bool, excluded: float = LOWEST) -> Value:
        """query · keyᵀ · scale, masked."""
        scores = self.product(self.query, self.key, 1, 1, self.wide) * self.scale
        if causal:
            if mask is not None:
                raise ArgumentError("attention: attn_mask and is_causal exclude each other")
            shape = (self.length, self.keys)
            seen = flat.ge(flat.iota(shape, 0), flat.iota(shape, 1))
            return flat.where(self.fitted(seen), scores, LOWEST)
        if mask is None:
            return scores
        if mask.dtype is dtypes.bool_:
            return flat.where(self.fitted(mask), scores, excluded)
        if mask.dtype not in (self.dtype, dtypes.float32):
            raise DTypeError(
                f"attention: attn_mask is bool or {self.dtype.name}, not {mask.dtype.name}",
                help="True marks what is attended to; numbers are added to the scores",
            )
        return scores + self.fitted(flat.convert(mask, self.wide))

    def fitted(self, mask: Value) -> Value:
        """A mask in the layout of the scores; not larger than it need be."""
        if mask.rank <= 2 and self.group == 1:
            return mask
        whole = (*self.batch, self.length, self.keys)
        if flat.broadcast_shapes(mask.shape, whole) != whole:
            raise ShapeError(f"attention: attn_mask {mask.type} does not fit scores of shape {list(whole)}")
        mask = flat.broadcast_to(mask, whole)
        return flat.reshape(mask, (*self.leading, self.group * self.length, self.keys))

    def weighted(self, chances: Value) -> Value:
        """chances · value."""
        chances = flat.convert(chances, self.dtype)
        return flat.convert(self.split(self.product(chances, self.value, 1, 0, self.wide)), self.dtype)

    def split(self, x: Value) -> Value:
        """The rows of heads that share a key, apart: (…, L, anything)."""
        return flat.reshape(x, (*self.batch, self.length, *x.shape[len(self.leading) + 1 :]))


def _rows(query: Value, key: Value, value: Value, mask: Value | None, scale: float) -> tuple[Value]:
    attention = _Attention(query, key, value, scale, False)
    chances, _ = _softmax(attention.scores(mask, False))
    return (attention.weighted(chances),)


_attend_by_rows = flat.differentiated(derived(_rows), elsewhere={"triton": row_attention.on_gpu})(_rows)


def _of_single_rows(attention: _Attention, mask: Value | None) -> Value:
    """Attention of queries of one row; heads that share a key are rows of it."""
    if mask is not None and attention.group > 1 and mask.rank > 2 and mask.shape[-3] > 1:
        mask = attention.fitted(mask)
    operands = attention.query, attention.key, attention.value
    return attention.split(_attend_by_rows(*operands, mask, float(attention.scale))[0])


def _dropped(state, chances, dropout_p):
    require(0 <= dropout_p <= 1, f"{dropout_p} is not a probability")
    if not dropout_p:
        return state, chances
    state, random = bits(state, chances.shape)
    kept = flat.convert(chance(random, 1 - dropout_p), chances.dtype)
    return state, chances * (kept * (1 / (1 - dropout_p)) if dropout_p < 1 else kept)


_BOOL = lambda *shape: T(*shape, dtype="bool", low=1)


def _calls():
    single = [T(4, 2, 8, 5, dtype="float32"), T(4, 2, 6, 5, dtype="float32"), T(4, 2, 6, 7, dtype="float32")]
    return [
        S(*single), S(*single, T(8, 6, dtype="float32")), S(*single, _BOOL(4, 1, 8, 6)),
        S(*single, None, 0.0, True), S(*single, scale=0.5), S(*single, T(3, 5, dtype="float32")),
        S(*single, None, 0.5), S(*single, T(8, 6, dtype="float32"), 0.0, True),
        S(T(3, 8, 4), T(3, 6, 4), T(3, 6, 4)), S(T(8, 4), T(6, 4), T(6, 4)), S(T(8), T(6, 4), T(6, 4)),
        S(T(2, 4, 8, 5, dtype="float32"), *[T(2, 2, 6, 5, dtype="float32")] * 2, enable_gqa=True),
        S(T(2, 3, 8, 5, dtype="float32"), *[T(2, 2, 6, 5, dtype="float32")] * 2, enable_gqa=True),
    ]  # fmt: skip


@op(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    module="nn",
    random=True,
    late=written,
    samples=_calls,
    autocast="lower",
    flops="attention",
    needs="grouped_heads<7>",
    torch_lowering="attention",
)
def scaled_dot_product_attention(
    state, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
):
    """softmax(query · keyᵀ · scale + attn_mask) · value; True in a mask marks what is attended to."""
    attention = _Attention(query, key, value, scale, enable_gqa)
    single = attention.length == 1 and not dropout_p and not is_causal
    if single and row_attention.fits(attention.query, attention.key, attention.value):
        return _of_single_rows(attention, attn_mask), state
    plain = attn_mask is None and not dropout_p
    if plain and fused_attention.fits(query, key, value, attention.group):
        return fused_attention.fused_attention(query, key, value, float(attention.scale), is_causal)[0], state
    chances, _ = _softmax(attention.scores(attn_mask, is_causal))
    state, chances = _dropped(state, chances, dropout_p)
    return attention.weighted(chances), state


@op(
    "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, "
    "bool enable_gqa=False) -> (Tensor, Tensor)",
    random=True,
    samples=_calls,
    flops="bmm",
    needs="grouped_heads<8>",
)
def _scaled_dot_product_attention_math(
    state, query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa
):
    """Attention, and the probabilities before dropout."""
    attention = _Attention(query, key, value, scale, enable_gqa)
    # Here a row that a bool mask excludes altogether attends to everything alike.
    excluded = dtypes.finfo(attention.wide).min
    chances, _ = _softmax(attention.scores(attn_mask, is_causal, excluded))
    kept = chances
    if dropout_mask is not None:
        kept = flat.where(flat.reshape(dropout_mask, chances.shape), 0, chances)
        kept = kept * (1 / (1 - dropout_p)) if dropout_p < 1 else kept
    else:
        state, kept = _dropped(state, chances, dropout_p)
    return attention.weighted(kept), flat.convert(attention.split(chances), attention.dtype), state


def _check_flash(query: Value, key: Value, value: Value, dropout_p: float) -> None:
    if {query.rank, key.rank, value.rank} != {4} or value.shape[-1] != query.shape[-1]:
        raise ShapeError("flash attention takes four dimensions, and heads of one size for all three")
    if dropout_p:
        raise ArgumentError("flash attention has no dropout", help="use scaled_dot_product_attention")


# Heads of size 1: of others PyTorch's kernel takes for granted that they are contiguous in memory.
_FLASH = lambda: [
    S(*[T(1, 1, n, 1, dtype=d) for n in (4, 5, 5)], 0.0, causal, attn_mask=mask, scale=scale)
    for d in ("float32", "float64")
    for causal, mask, scale in ((False, None, None), (True, None, 0.3), (False, T(4, 5, dtype=d), None))
]


@op(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, "
    "float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> "
    "(Tensor output, Tensor logsumexp)",
    samples=_FLASH,
    flops="attention",
    needs="attention",
)
def _scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, attn_mask, scale):
    """Attention, and the log of the sum of each row's exponentials."""
    _check_flash(query, key, value, dropout_p)
    attention = _Attention(query, key, value, scale, False)
    chances, log_sum = _softmax(attention.scores(attn_mask, is_causal))
    return attention.weighted(chances), attention.split(log_sum)


@op(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, "
    "Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, "
    "Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    function=False,
    samples=lambda: [
        S(*[T(1, 1, 4, 1, dtype=d)] * 5, T(1, 1, 4, dtype=d, low=3, high=5), 0.0, causal, scale=s)
        for d in ("float32", "float64") for causal, s in ((False, None), (True, 0.3))
    ], needs="attention_backward", late=written)  # fmt: skip
def _scaled_dot_product_flash_attention_for_cpu_backward(
    gradient, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale
):
    """The cotangents of query, key and value, from the result and the logs of the sums."""
    _check_flash(query, key, value, dropout_p)
    attention = _Attention(query, key, value, scale, False)
    for each, shape in ((gradient, query.shape), (out, query.shape), (logsumexp, query.shape[:-1])):
        if each.shape != shape or not each.dtype.is_floating_point:
            raise ShapeError(f"flash attention: {each.type} does not fit the query {query.type}")
    wide = attention.wide
    query, key, value = (flat.convert(x, wide) for x in (attention.query, attention.key, attention.value))
    gradient, out, log_sum = (flat.convert(x, wide) for x in (gradient, out, logsumexp))
    chances = flat.exp(attention.scores(attn_mask, is_causal) - flat.unsqueeze(log_sum, -1))
    to_value = attention.product(chances, gradient, 0, 0, wide)
    to_chances = attention.product(gradient, value, 1, 1, wide)
    to_scores = chances * (to_chances - flat.sum(gradient * out, (-1,), keepdim=True)) * attention.scale
    to_query = attention.product(to_scores, key, 1, 0, wide)
    to_key = attention.product(to_scores, query, 0, 0, wide)
    return tuple([flat.convert(x, attention.dtype) for x in (to_query, to_key, to_value)])
