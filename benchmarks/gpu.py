"""GPT-2 124M trained on a GPU, in bfloat16, batch 16 x 1024: Tenfold, JAX with its own attention and with
cuDNN's, PyTorch eager and torch.compile, each in a process of its own. `python -m benchmarks.gpu` prints the
table."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LAYERS, WIDTH, HEADS, VOCABULARY = 12, 768, 12, 50257
CONTENDERS = ("tenfold", "tenfold-lazy", "jax", "jax-cudnn", "pytorch", "torch.compile")
EXAMPLE = "example:\n  python -m benchmarks.gpu --only tenfold --only jax-cudnn --steps 20\n"


def gpt2(module: Any, length: int) -> Any:
    """GPT-2 as it is usually written for PyTorch; `module` is torch or tenfold."""
    nn, functional = module.nn, module.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attn, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            heads = [
                each.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
                for each in self.attn(self.ln_1(x)).split(width, dim=2)
            ]
            mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.out(functional.gelu(self.fc(self.ln_2(x)), approximate="tanh"))

    class Gpt2(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(length, WIDTH)
            self.h = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.ln_f = nn.LayerNorm(WIDTH)

        def forward(self, tokens: Any) -> Any:
            x = self.wte(tokens) + self.wpe.weight
            for block in self.h:
                x = block(x)
            return functional.linear(self.ln_f(x), self.wte.weight)

    return Gpt2()


def data(batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (batch, length + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def in_pytorch_style(module: Any, batch: int, length: int, wrap: Callable[..., Any]) -> Callable[[], float]:
    module.manual_seed(0)
    model = gpt2(module, length)
    for each in model.parameters():
        if each.dim() > 1:
            module.nn.init.normal_(each, std=0.02)
    model.to(device="cuda", dtype=module.bfloat16)
    optimizer = module.optim.Adam(model.parameters(), lr=1e-4)
    x, y = (module.tensor(each).to("cuda") for each in data(batch, length))

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        logits = model(x).view(-1, VOCABULARY)
        loss = module.nn.functional.cross_entropy(logits, y.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    run = wrap(step, model)
    return lambda: run(x, y)


def in_jax(batch: int, length: int, attention: str) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    keys = iter(jax.random.split(jax.random.key(0), 200))
    make = lambda *shape: (jax.random.normal(next(keys), shape) * 0.02).astype(jnp.bfloat16)
    zeros, ones = (lambda n: jnp.zeros(n, jnp.bfloat16)), (lambda n: jnp.ones(n, jnp.bfloat16))
    norm = lambda: (ones(WIDTH), zeros(WIDTH))
    blocks = [
        {
            "ln_1": norm(), "attn": (make(WIDTH, 3 * WIDTH), zeros(3 * WIDTH)),
            "proj": (make(WIDTH, WIDTH), zeros(WIDTH)), "ln_2": norm(),
            "fc": (make(WIDTH, 4 * WIDTH), zeros(4 * WIDTH)), "out": (make(4 * WIDTH, WIDTH), zeros(WIDTH)),
        }
        for _ in range(LAYERS)
    ]  # fmt: skip
    weights = {"wte": make(VOCABULARY, WIDTH), "wpe": make(length, WIDTH), "h": blocks, "ln_f": norm()}

    def layer_norm(w: Any, x: Any) -> Any:
        x = x.astype(jnp.float32)
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return ((x - mean) * jax.lax.rsqrt(variance + 1e-5)).astype(jnp.bfloat16) * w[0] + w[1]

    def model(w: Any, tokens: Any) -> Any:
        x = w["wte"][tokens] + w["wpe"]
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
        change = lambda w, m, v: w - (scale * m / (jnp.sqrt(v) / root + 1e-8)).astype(w.dtype)
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


def contender(name: str, batch: int, length: int) -> Callable[[], Any]:
    if name.startswith("jax"):
        return in_jax(batch, length, "cudnn" if name == "jax-cudnn" else "xla")
    if name.startswith("tenfold"):
        import tenfold

        compiled = name == "tenfold"
        return in_pytorch_style(
            tenfold, batch, length, lambda step, model: tenfold.compile(step) if compiled else step
        )
    import torch

    def wrap(step: Any, model: Any) -> Any:
        if name == "torch.compile":
            model.forward = torch.compile(model.forward)
        return step

    return in_pytorch_style(torch, batch, length, wrap)


def measure(name: str, batch: int, length: int, steps: int) -> dict[str, Any]:
    """Seconds to the first loss, and milliseconds a step, the loss read after every five."""
    start = time.perf_counter()
    step = contender(name, batch, length)
    losses = [float(step())]
    first = time.perf_counter() - start
    losses += [float(step()) for _ in range(4)]
    samples = []
    for _ in range(max(1, steps // 5)):
        start = time.perf_counter()
        for _ in range(5):
            loss = step()
        losses.append(float(loss))
        samples.append((time.perf_counter() - start) / 5 * 1e3)
    return {
        "name": name,
        "first": first,
        "ms": statistics.median(samples),
        "best": min(samples),
        "losses": losses,
    }


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    options.add_argument("--only", action="append", choices=CONTENDERS, help="one contender; may be repeated")
    options.add_argument("--steps", type=int, default=30, help="steps that are timed")
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--length", type=int, default=1024)
    options.add_argument("--here", choices=CONTENDERS, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.here:
        print(json.dumps(measure(chosen.here, chosen.batch, chosen.length, chosen.steps)))
        return 0
    settings = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    print(f"{'':16}{'first step':>12}{'ms a step':>12}{'best':>9}   losses")
    for name in chosen.only or CONTENDERS:
        command = [sys.executable, "-m", "benchmarks.gpu", "--here", name, "--steps", str(chosen.steps)]
        command += ["--batch", str(chosen.batch), "--length", str(chosen.length)]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name:16} failed:\n{done.stderr[-1500:]}", flush=True)
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        losses = " ".join(f"{each:.3f}" for each in (*found["losses"][:3], found["losses"][-1]))
        print(
            f"{name:16}{found['first']:>10.1f} s{found['ms']:>12.2f}{found['best']:>9.2f}   {losses}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
