"""GPT-2 124M as it is usually written for PyTorch; `module` is torch or tenfold. Training in mixed precision
with fused AdamW and a vocabulary padded to 50,304, and decoding with caches in buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.gpu.steps import stepping

LAYERS, WIDTH, HEADS, VOCABULARY = 12, 768, 12, 50304


def gpt2(module: Any, length: int) -> Any:
    nn, functional = module.nn, module.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attn, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def make_cache(self, batch: int) -> None:
            shape, weight = (batch, HEADS, length, WIDTH // HEADS), self.attn.weight
            for name in ("keys", "values"):
                self.register_buffer(name, module.zeros(shape, dtype=weight.dtype, device=weight.device))

        def forward(self, x: Any, position: Any = None, seen: Any = None) -> Any:
            batch, length, width = x.shape
            q, k, v = [
                each.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
                for each in self.attn(self.ln_1(x)).split(width, dim=2)
            ]
            if position is None:
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                self.keys.index_copy_(2, position, k)
                self.values.index_copy_(2, position, v)
                mixed = functional.scaled_dot_product_attention(q, self.keys, self.values, seen)
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

        def decode(self, token: Any, position: Any) -> tuple[Any, Any]:
            """The next token of each row (batch, 1), and the position after this one (1,)."""
            seen = (module.arange(length, device=token.device) <= position).view(1, 1, 1, length)
            x = self.wte(token) + self.wpe(position)
            for block in self.h:
                x = block(x, position, seen)
            scores = functional.linear(self.ln_f(x), self.wte.weight)
            return scores.argmax(-1), position + 1

    made = Gpt2()
    module.manual_seed(0)
    for each in made.parameters():
        if each.dim() > 1:
            module.nn.init.normal_(each, std=0.02)
    return made


def data(batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (batch, length + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def training(module: Any, batch: int, length: int, wrap: Callable[..., Any]) -> Callable[[], Any]:
    """A step of training. `wrap(step, losses)` compiles the step, or the loss in the dict `losses` alone."""
    model = gpt2(module, length)
    model.to(device="cuda")
    optimizer = module.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    x, y = (module.tensor(each).to("cuda") for each in data(batch, length))

    def loss_of(x: Any, y: Any) -> Any:
        with module.autocast("cuda", dtype=module.bfloat16):
            logits = model(x)
            return module.nn.functional.cross_entropy(logits.view(-1, VOCABULARY), y.view(-1))

    run = stepping(loss_of, optimizer, wrap)
    return lambda: run(x, y)


def decoding(
    module: Any,
    batch: int,
    length: int,
    wrap: Callable[..., Any],
    device: str = "cuda",
    dtype: str = "bfloat16",
    weights: Mapping[str, np.ndarray] | None = None,
) -> Callable[[], Any]:
    """One token by greedy decoding. `wrap` compiles the step. Without `weights` the model has random ones."""
    model = gpt2(module, length).to(device=device, dtype=getattr(module, dtype)).eval()
    if weights is not None:
        model.load_state_dict({name: module.tensor(array) for name, array in weights.items()})
    for block in model.h:
        block.make_cache(batch)
    state = (
        module.zeros((batch, 1), dtype=module.int64, device=device),
        module.zeros((1,), dtype=module.int64, device=device),
    )
    run = wrap(model.decode)

    def once() -> Any:
        nonlocal state
        with module.no_grad():
            token, position = run(*state)
        state = (token.clone(), position.clone()) if module.__name__ == "torch" else (token, position)
        return token

    return once
