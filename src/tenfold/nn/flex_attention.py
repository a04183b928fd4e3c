"""`nn.attention.flex_attention`: attention in which a user's function changes or masks the scores.

The function is written for one score and its indices. It is called once, on all scores and on indices that
broadcast with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_score_mod_signature = _mask_mod_signature = Callable[..., Tensor]


class AuxRequest(tuple):
    """The additional results to ask of `flex_attention`: `lse`, `max_scores`."""

    def __new__(cls, lse: bool = False, max_scores: bool = False) -> AuxRequest:
        return super().__new__(cls, (lse, max_scores))


class AuxOutput(tuple):
    """The additional results of `flex_attention`: `lse`, `max_scores`."""

    def __new__(cls, lse: Tensor | None = None, max_scores: Tensor | None = None) -> AuxOutput:
        return super().__new__(cls, (lse, max_scores))

    lse = property(lambda self: self[0])
    max_scores = property(lambda self: self[1])


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Let every query see every key."""
    return token_q.new_ones(()).bool()


def and_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A mask that keeps a score if all of these masks keep it."""

    def both(*indices: Tensor) -> Tensor:
        seen = noop_mask(*indices)
        for mask_mod in mask_mods:
            seen = seen & mask_mod(*indices)
        return seen

    return both


def or_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A mask that keeps a score if any of these masks keeps it."""

    def either(*indices: Tensor) -> Tensor:
        seen = ~noop_mask(*indices)
        for mask_mod in mask_mods:
            seen = seen | mask_mod(*indices)
        return seen

    return either


def _indices(shape: tuple[int, ...], device: Any) -> list[Tensor]:
    """The four indices of a score, each along a dimension of its own."""
    made = []
    for dim, size in enumerate(shape):
        along = [1] * len(shape)
        along[dim] = size
        made.append(aten("arange")(size, device=device).reshape(tuple(along)))
    return made


class BlockMask:
    """Which queries see which keys: a function of indices, for scores of this shape. It is evaluated where it
    is used; XLA decides which blocks to skip."""

    def __init__(self, shape: tuple[int, ...], mask_mod: Callable[..., Tensor], block_size: Any, device: Any):
        self.shape, self.mask_mod, self.device = shape, mask_mod, device
        self.BLOCK_SIZE = (block_size, block_size) if isinstance(block_size, int) else tuple(block_size)
        self.seq_lengths = shape[-2:]

    def full(self) -> Tensor:
        """The whole mask, as bools."""
        return self.dense(self.shape)

    def dense(self, shape: tuple[int, ...]) -> Tensor:
        """The mask of scores of a shape, as bools."""
        return self.mask_mod(*_indices(shape, self.device)).broadcast_to(shape)

    def to_dense(self) -> Tensor:
        """The mask by blocks: 1 for each block in which some query sees some key."""
        rows, columns = self.BLOCK_SIZE
        mask = self.dense(self.shape)
        padded = aten("constant_pad_nd")(mask, (0, -self.shape[3] % columns, 0, -self.shape[2] % rows), False)
        batch, heads, length, width = padded.shape
        blocks = padded.reshape(batch, heads, length // rows, rows, width // columns, columns)
        return blocks.any(5).any(3).to(dtypes.int32)

    def sparsity(self) -> float:
        """The percentage of blocks that are masked entirely."""
        return 100.0 * (1.0 - self.to_dense().float().mean().item())

    def numel(self) -> int:
        return math.prod(self.shape)

    def to(self, device: Any) -> BlockMask:
        return BlockMask(self.shape, self.mask_mod, self.BLOCK_SIZE, device)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, block_size={self.BLOCK_SIZE})"


@located
def create_block_mask(
    mask_mod: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: Any = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    **options: Any,
) -> BlockMask:
    """The mask of a function of (batch, head, query, key); `B` or `H` of None means it is the same for
    all."""
    return BlockMask((B or 1, H or 1, Q_LEN, KV_LEN), mask_mod, BLOCK_SIZE, device)


@located
def create_mask(
    mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """A function of (batch, head, query, key) as a tensor of bools (B, H, Q_LEN, KV_LEN)."""
    return BlockMask((B or 1, H or 1, Q_LEN, KV_LEN), mod_fn, _DEFAULT_SPARSE_BLOCK_SIZE, device).full()


@located
def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(Q Kᵀ · scale, batch, head, query, key)) V where the mask lets a query see a key.

    query (B, H, L, E), key (B, H', S, E), value (B, H', S, V); H' divides H with `enable_gqa`. A query that
    sees nothing gets zeros.
    """
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise ShapeError("query, key and value have four dimensions")
    heads, served = query.shape[1], key.shape[1]
    if heads != served:
        if not enable_gqa or heads % served:
            raise ArgumentError(f"{heads} heads of queries and {served} of keys need enable_gqa=True")
        key, value = [each.repeat_interleave(heads // served, 1) for each in (key, value)]
    wide = dtypes.float32 if query.dtype in (dtypes.float16, dtypes.bfloat16) else query.dtype
    scores = (query @ key.transpose(-2, -1)).to(wide) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *_indices(tuple(scores.shape), query.device))
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.dense(tuple(scores.shape)), -math.inf)
    lse = scores.logsumexp(-1)
    blind = lse == -math.inf
    weights = (scores - lse.masked_fill(blind, 0.0).unsqueeze(-1)).exp()
    output = weights.to(value.dtype) @ value
    if return_aux is not None:
        return output, AuxOutput(lse if return_aux[0] else None, scores.amax(-1) if return_aux[1] else None)
    return (output, lse) if return_lse else output
