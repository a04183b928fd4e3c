"""PyTorch's public functions and methods, by module, from a list that `tools/pytorch_names.py` writes."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def pytorch_names() -> dict[str, list[str]]:
    """The names by the title of their module: "torch", "torch.Tensor", "torch.nn.functional", …"""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    sections = [section.partition("]\n") for section in text.split("[")[1:]]
    return {title: names.split() for title, _, names in sections}
