"""How a sparse tensor is written: its parts, then its size, as PyTorch writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base import formatting
from tenfold.tensor import Tensor
from tenfold.trace.context import context


def printed(parts: Sequence[tuple[str, Tensor]], whole: Any, in_one_line: bool) -> str:
    """The text of a sparse tensor. After compressed parts the size follows in the same line."""
    if context.recorder is not None:
        return f"Tensor({whole._value.type}, {whole.layout}, recorded)"
    texts = [
        f"{name}=tensor({formatting.format_part(part.detach().numpy(), part.dtype, f'{name}=tensor(')}"
        for name, part in parts
    ]
    suffixes = [] if whole.device.type == "cpu" else [f"device='{whole.device.resolved}'"]
    suffixes += [f"size={tuple(whole.shape)}", f"nnz={whole._nnz()}"]
    if not formatting.is_implied(whole.dtype):
        suffixes.append(f"dtype={whole.dtype!r}")
    suffixes.append(f"layout={whole.layout!r}")
    if whole.requires_grad:
        suffixes.append("requires_grad=True" if whole.is_leaf else f"grad_fn={whole.grad_fn}")
    return formatting.joined(texts, suffixes, in_one_line)
