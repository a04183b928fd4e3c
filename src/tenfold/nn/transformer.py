"""The transformer of "Attention Is All You Need": encoder, decoder, and the layers of both."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.base import devices, dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import as_dtype
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.nn import functional as F, init
from tenfold.nn.attention import MultiheadAttention
from tenfold.nn.containers import ModuleList
from tenfold.nn.dropout import Dropout
from tenfold.nn.linear import Linear
from tenfold.nn.module import Module, in_layer
from tenfold.nn.normalisation import LayerNorm
from tenfold.tensor import Tensor, leaf

Activation = str | Callable[[Tensor], Tensor]


class TransformerEncoderLayer(Module):
    """Self-attention, then two linear layers; each added to its input and normalised

    With norm_first the inputs are normalised instead of the sums.

        layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
        layer(tn.ones(3, 10, 8)).shape  # [3, 10, 8]
    """

    @in_layer
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        place = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **place)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)
        # What PyTorch's layer of a saved module chooses its quick way by.
        self.activation_relu_or_gelu = (
            {"relu": 1, "gelu": 2}.get(activation, 0) if isinstance(activation, str) else 0
        )

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        attend = lambda x: self.dropout1(
            self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]
        )
        feed = lambda x: self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        if self.norm_first:
            src = src + attend(self.norm1(src))
            return src + feed(self.norm2(src))
        src = self.norm1(src + attend(src))
        return self.norm2(src + feed(src))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output, then two linear layers; each added to its input and
    normalised

    With norm_first the inputs are normalised instead of the sums.

        layer = nn.TransformerDecoderLayer(16, 2, batch_first=True)
        layer(tn.ones(1, 4, 16), tn.ones(1, 5, 16)).shape  # [1, 4, 16]
    """

    @in_layer
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        place = {"device": device, "dtype": dtype}
        attention = lambda: MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **place
        )
        self.self_attn = attention()
        self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        attend = lambda x: self.dropout1(
            self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]
        )
        consult = lambda x: self.dropout2(
            self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )[0]
        )
        feed = lambda x: self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        if self.norm_first:
            tgt = tgt + attend(self.norm1(tgt))
            tgt = tgt + consult(self.norm2(tgt))
            return tgt + feed(self.norm3(tgt))
        tgt = self.norm1(tgt + attend(tgt))
        tgt = self.norm2(tgt + consult(tgt))
        return self.norm3(tgt + feed(tgt))


class TransformerEncoder(Module):
    """Calls num_layers copies of an encoder layer in turn, then `norm` if there is one

    Source and output (S, N, E), or (N, S, E) with batch_first layers.

        layer = nn.TransformerEncoderLayer(16, 2, batch_first=True)
        nn.TransformerEncoder(layer, 2)(tn.ones(1, 5, 16)).shape  # [1, 5, 16]
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(
                src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal)
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Calls num_layers copies of a decoder layer in turn, then `norm` if there is one

    Target and output (T, N, E), memory (S, N, E); N first with batch_first layers.

        layer = nn.TransformerDecoderLayer(16, 2, batch_first=True)
        nn.TransformerDecoder(layer, 2)(tn.ones(1, 4, 16), tn.ones(1, 5, 16)).shape  # [1, 4, 16]
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of `src`, and a decoder of `tgt` that attends to its output

    src (S, N, d_model) and tgt (T, N, d_model), or with batch_first N first, or without N; output like tgt.

        model = nn.Transformer(8, 2, 1, 1, 16)
        model(tn.ones(10, 3, 8), tn.ones(5, 3, 8)).shape  # [5, 3, 8]
    """

    @in_layer
    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        place = {"device": device, "dtype": dtype}
        options = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
            bias,
        )  # fmt: skip
        if custom_encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
            layer: Module = TransformerEncoderLayer(*options, **place)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        else:
            self.encoder = custom_encoder
        if custom_decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
            layer = TransformerDecoderLayer(*options, **place)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        else:
            self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @in_layer
    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError(f"src has a batch of {src.shape[batch]}, tgt one of {tgt.shape[batch]}")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"src and tgt have d_model = {self.d_model} features, not {src.shape[-1]} and {tgt.shape[-1]}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask (sz, sz) that keeps each place from attending to later ones: -inf above the diagonal."""
        wanted = dtypes.get_default_dtype() if dtype is None else as_dtype(dtype)
        place = devices.get_default_device() if device is None else Device(device)
        later = np.triu(np.ones((sz, sz), bool), 1)
        return leaf(np.where(later, -np.inf, 0.0).astype(wanted.numpy), place, wanted)


def _get_activation_fn(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise ArgumentError(f"no activation {activation!r}", help="relu, gelu, or a function")
    return getattr(F, activation)
