"""Multi-head attention, and the names by which PyTorch selects an attention kernel."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.base.source import capture
from tenfold.nn import functional as F, init
from tenfold.nn.linear import NonDynamicallyQuantizableLinear
from tenfold.nn.module import Module, in_layer
from tenfold.nn.parameter import new_parameter
from tenfold.tensor import Tensor


class MultiheadAttention(Module):
    """softmax(Q Kᵀ / sqrt(E/heads) + mask) V for each head, the heads joined and projected

    query (L, N, embed_dim), key (S, N, kdim), value (S, N, vdim), or with batch_first N before L and S, or
    without N. Returns the output, shaped like query, and the weights (N, L, S), averaged over the heads
    unless average_attn_weights is False. attn_mask (L, S) or (N·heads, L, S) and key_padding_mask (N, S) are
    added to the scores; in a bool mask, True masks a score.

        attention = nn.MultiheadAttention(8, 2, batch_first=True)
        x = tn.ones(3, 5, 8)
        output, weights = attention(x, x, x)  # [3, 5, 8], [3, 5, 5]
    """

    @in_layer
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ArgumentError(f"embed_dim and num_heads are positive, not {embed_dim} and {num_heads}")
        if embed_dim % num_heads:
            raise ArgumentError(f"embed_dim {embed_dim} does not divide into {num_heads} heads")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        make = lambda *size: new_parameter(size, 0, dtype, device)
        apart = not self._qkv_same_embed_dim
        self.register_parameter("q_proj_weight", make(embed_dim, embed_dim) if apart else None)
        self.register_parameter("k_proj_weight", make(embed_dim, self.kdim) if apart else None)
        self.register_parameter("v_proj_weight", make(embed_dim, self.vdim) if apart else None)
        self.register_parameter("in_proj_weight", None if apart else make(3 * embed_dim, embed_dim))
        self.register_parameter("in_proj_bias", make(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self.register_parameter("bias_k", make(1, 1, embed_dim) if add_bias_kv else None)
        self.register_parameter("bias_v", make(1, 1, embed_dim) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        turned = self.batch_first and query.ndim == 3
        if turned:
            query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return (output.transpose(0, 1) if turned else output), weights


class SDPBackend(enum.Enum):
    """Kernels for `scaled_dot_product_attention`, as PyTorch numbers them."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: SDPBackend | list[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Has no effect: the compiled program decides how attention is computed, and every kernel gives the same
    result."""
    named = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not named or not all(isinstance(each, SDPBackend) for each in named):
        raise ArgumentError("sdpa_kernel takes an SDPBackend, or a list of some").located(
            "sdpa_kernel", capture()
        )
    yield
