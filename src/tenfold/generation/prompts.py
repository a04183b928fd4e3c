"""Prompts of different lengths as one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError
from tenfold.tensor import Tensor
from tenfold.tensor.interchange import tensor

SMALLEST = 16  # tokens for which there is room at least


class Prompts(NamedTuple):
    """Prompts filled up with zeros on their right to one size (count, size), and how long each is."""

    tokens: Tensor
    lengths: Tensor


def as_rows(tokens: Any) -> list[np.ndarray]:
    """Prompts from a tensor (count, length) or (length,), or from a list of such rows of any lengths."""
    rows = _rows(tokens)
    if not rows or min(map(len, rows)) == 0:
        raise ArgumentError("every prompt must have at least one token")
    return rows


def as_prompts(rows: list[np.ndarray], device: Device, limit: int | None) -> Prompts:
    """The prompts with room for a power of two, so that few programs serve all."""
    lengths = [len(each) for each in rows]
    padded = np.zeros((len(rows), room(max(lengths), limit)), np.int64)
    for row, each in zip(padded, rows, strict=True):
        row[: len(each)] = each
    place = lambda array: tensor(array).to(device)
    return Prompts(place(padded), place(np.array(lengths, np.int64)))


def _rows(tokens: Any) -> list[np.ndarray]:
    if isinstance(tokens, Tensor):
        if tokens.ndim not in (1, 2):
            raise ArgumentError(f"prompts are (count, length) or (length,), not {list(tokens.shape)}")
        array = tokens.detach().cpu().numpy()
        found = list(array) if array.ndim == 2 else [array]
    elif isinstance(tokens, Sequence) and tokens and isinstance(tokens[0], Tensor | Sequence | np.ndarray):
        found = [row for token in tokens for row in _rows(token)]
    else:
        found = [np.asarray(tokens)]
    if any(each.dtype.kind not in "iu" and each.size for each in found):
        raise ArgumentError(f"tokens are integers, not {found[0].dtype}")
    return found


def room(count: int, limit: int | None) -> int:
    """The size that is made for so many tokens: a power of two, but no more than a model may hold."""
    size = max(SMALLEST, 1 << (count - 1).bit_length())
    return size if limit is None else max(count, min(size, limit))
