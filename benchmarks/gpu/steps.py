"""A step of training, as each model here takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def stepping(loss_of: Callable[..., Any], optimizer: Any, wrap: Callable[..., Any]) -> Callable[..., Any]:
    """A step on data that gives its loss. `wrap(step, losses)` compiles the step, or the loss in the dict
    `losses` alone."""
    losses = {"loss": loss_of}

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = losses["loss"](x, y)
        loss.backward()
        optimizer.step()
        return loss

    return wrap(step, losses)
