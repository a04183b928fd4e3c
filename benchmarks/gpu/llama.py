"""A model of Llama's kind with 1.1 billion parameters; `module` is torch or tenfold. Training in mixed
precision with checkpointed layers, and reading a prompt in bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.steps import example, stepping

LAYERS, VOCABULARY = 22, 32000


def _model(module: Any) -> Any:
    module.manual_seed(0)
    return example("llama.py", module)["llama_1b"](layers=LAYERS)


def _tokens(module: Any, batch: int, length: int) -> Any:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (batch, length))
    return module.tensor(tokens).to("cuda")


def training(module: Any, batch: int, length: int, wrap: Callable[..., Any]) -> Callable[[], Any]:
    """A step of training. `wrap(step, losses)` compiles the step, or the loss in the dict `losses` alone."""
    model = _model(module).to(device="cuda")
    for layer in model.model.layers:
        layer.forward = _checkpointed(module, layer.forward)
    optimizer = module.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    tokens = _tokens(module, batch, length + 1)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def loss_of(x: Any, y: Any) -> Any:
        with module.autocast("cuda", dtype=module.bfloat16):
            scores = model(x)
            return module.nn.functional.cross_entropy(scores.view(-1, VOCABULARY), y.view(-1))

    run = stepping(loss_of, optimizer, wrap)
    return lambda: run(x, y)


def _checkpointed(module: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
    from importlib import import_module

    checkpoint = import_module(f"{module.__name__}.utils.checkpoint").checkpoint
    return lambda x, turns, cache, positions: checkpoint(forward, x, turns, use_reentrant=False)


def reading(module: Any, length: int, wrap: Callable[..., Any]) -> Callable[[], Any]:
    """The token that follows a prompt."""
    model = _model(module).to(device="cuda", dtype=module.bfloat16).eval()
    tokens = _tokens(module, 1, length)
    last = module.tensor([length - 1]).to("cuda")
    run = wrap(lambda tokens, last: model(tokens, last=last).argmax(-1))

    def once() -> Any:
        with module.no_grad():
            return run(tokens, last)

    return once
