"""GPT-2 124M in JAX: weights in float32, products and attention in bfloat16, AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.gpu.gpt2 import HEADS, LAYERS, VOCABULARY, WIDTH, data


def _weights(length: int, dtype: Any) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    keys = iter(jax.random.split(jax.random.key(0), 200))
    make = lambda *shape: (jax.random.normal(next(keys), shape) * 0.02).astype(dtype)
    zeros, ones = (lambda n: jnp.zeros(n, dtype)), (lambda n: jnp.ones(n, dtype))
    norm = lambda: (ones(WIDTH), zeros(WIDTH))
    blocks = [
        {
            "ln_1": norm(), "attn": (make(WIDTH, 3 * WIDTH), zeros(3 * WIDTH)),
            "proj": (make(WIDTH, WIDTH), zeros(WIDTH)), "ln_2": norm(),
            "fc": (make(WIDTH, 4 * WIDTH), zeros(4 * WIDTH)), "out": (make(4 * WIDTH, WIDTH), zeros(WIDTH)),
        }
        for _ in range(LAYERS)
    ]  # fmt: skip
    return {"wte": make(VOCABULARY, WIDTH), "wpe": make(length, WIDTH), "h": blocks, "ln_f": norm()}


def training(batch: int, length: int, attention: str) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    weights = _weights(length, jnp.float32)

    def layer_norm(w: Any, x: Any) -> Any:
        x = x.astype(jnp.float32)
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return ((x - mean) * jax.lax.rsqrt(variance + 1e-5) * w[0] + w[1]).astype(jnp.bfloat16)

    def model(w: Any, tokens: Any) -> Any:
        w = jax.tree.map(lambda each: each.astype(jnp.bfloat16), w)
        x = (w["wte"][tokens] + w["wpe"]).astype(jnp.bfloat16)
        for b in w["h"]:
            q, k, v = jnp.split(layer_norm(b["ln_1"], x) @ b["attn"][0] + b["attn"][1], 3, -1)
            q, k, v = (each.reshape(*x.shape[:2], HEADS, -1) for each in (q, k, v))
            mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=attention)
            x = x + mixed.reshape(x.shape) @ b["proj"][0] + b["proj"][1]
            hidden = jax.nn.gelu(layer_norm(b["ln_2"], x) @ b["fc"][0] + b["fc"][1], approximate=True)
            x = x + hidden @ b["out"][0] + b["out"][1]
        return layer_norm(w["ln_f"], x) @ w["wte"].T

    def loss_of(w: Any, x: Any, y: Any) -> Any:
        logits = model(w, x).astype(jnp.float32)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1)
        return -chosen.mean()

    def step(state: Any, x: Any, y: Any) -> Any:
        w, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(w, x, y)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        scale, root = 1e-4 / (1 - 0.9**t), jnp.sqrt(1 - 0.999**t)
        change = lambda w, m, v: w * (1 - 1e-4 * 0.01) - scale * m / (jnp.sqrt(v) / root + 1e-8)
        return (jax.tree.map(change, w, m, v), m, v, t), loss

    run = jax.jit(step, donate_argnums=0)
    blank = lambda: jax.tree.map(jnp.zeros_like, weights)
    state = (weights, blank(), blank(), jnp.zeros((), jnp.float32))
    x, y = map(jnp.array, data(batch, length))

    def once() -> Any:
        nonlocal state
        state, loss = run(state, x, y)
        return loss

    return once


def decoding(batch: int, length: int, dtype: str = "bfloat16") -> Callable[[], Any]:
    """One token by greedy decoding, with caches that are donated."""
    import jax
    import jax.numpy as jnp

    weights = _weights(length, dtype)
    cache = [jnp.zeros((2, batch, HEADS, length, WIDTH // HEADS), dtype) for _ in range(LAYERS)]

    def layer_norm(w: Any, x: Any) -> Any:
        x = x.astype(jnp.float32)
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return ((x - mean) * jax.lax.rsqrt(variance + 1e-5)).astype(dtype) * w[0] + w[1]

    def step(w: Any, cache: Any, token: Any, position: Any) -> Any:
        x = w["wte"][token] + w["wpe"][position]
        kept, seen = [], jnp.arange(length) <= position
        for b, stored in zip(w["h"], cache, strict=True):
            q, k, v = jnp.split(layer_norm(b["ln_1"], x) @ b["attn"][0] + b["attn"][1], 3, -1)
            new = jnp.stack([k, v]).reshape(2, batch, HEADS, 1, -1)
            stored = jax.lax.dynamic_update_slice(stored, new, (0, 0, 0, position, 0))
            kept.append(stored)
            scores = jnp.einsum("bhd,bhsd->bhs", q.reshape(batch, HEADS, -1), stored[0]) / 8.0
            scores = jnp.where(seen, scores.astype(jnp.float32), -jnp.inf)
            chances = jax.nn.softmax(scores).astype(dtype)
            mixed = jnp.einsum("bhs,bhsd->bhd", chances, stored[1]).reshape(batch, WIDTH)
            x = x + mixed @ b["proj"][0] + b["proj"][1]
            hidden = jax.nn.gelu(layer_norm(b["ln_2"], x) @ b["fc"][0] + b["fc"][1], approximate=True)
            x = x + hidden @ b["out"][0] + b["out"][1]
        return kept, (layer_norm(w["ln_f"], x) @ w["wte"].T).argmax(-1), position + 1

    run = jax.jit(step, donate_argnums=1)
    state = (cache, jnp.zeros(batch, jnp.int32), jnp.int32(0))

    def once() -> Any:
        nonlocal state
        state = run(weights, *state)
        return state[1]

    return once
