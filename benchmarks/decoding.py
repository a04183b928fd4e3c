"""Decoding on the CPU: GPT-2 124M, batch 1, with a static cache of 1,024 tokens. Tenfold and PyTorch
have the same weights and must find the same tokens; JAX has others of the same shapes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tenfold as tn
from benchmarks.gpu import gpt2, jax_gpt2
from benchmarks.harness import OURS, Benchmark, Sample

LENGTH, TOKENS, CHECKED = 1024, 12, 8


def weights() -> dict[str, np.ndarray]:
    """Weights at which one token is clearly the likeliest."""
    random = np.random.default_rng(0)
    return {
        name: (
            random.normal(size=each.shape) * 0.1
            + name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight"))
        ).astype(np.float32)
        for name, each in gpt2.gpt2(torch, LENGTH).state_dict().items()
    }


def contenders(folder: Path) -> Mapping[str, Sample]:
    arrays = weights()
    wraps: dict[str, tuple[Any, Any]] = {
        OURS: (tn, tn.compile),
        "PyTorch": (torch, lambda step: step),
        "torch.compile": (torch, torch.compile),
    }
    steps = {
        name: gpt2.decoding(module, 1, LENGTH, wrap, device="cpu", dtype="float32", weights=arrays)
        for name, (module, wrap) in wraps.items()
    }
    tokens = {name: [int(np.asarray(step()).item()) for _ in range(CHECKED)] for name, step in steps.items()}
    if len({tuple(each) for each in tokens.values()}) > 1:
        raise RuntimeError(f"the tokens differ: {tokens}")
    steps["JAX"] = jax_gpt2.decoding(1, LENGTH, "float32")
    return {name: timed(step) for name, step in steps.items()}


def timed(step: Callable[[], Any]) -> Sample:
    """Seconds a token; the last is read."""

    def sample() -> float:
        np.asarray(step())
        start = time.perf_counter()
        for _ in range(TOKENS):
            token = step()
        np.asarray(token)
        return (time.perf_counter() - start) / TOKENS

    return sample


BENCHMARKS = (
    Benchmark(
        "decode",
        "a token of GPT-2 124M, batch 1, cache of 1,024",
        "torch.compile",
        0.8,
        contenders,
        also=(("PyTorch", 0.8), ("JAX", 0.8)),
    ),
)
