"""A step of training, as each model here takes it."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODELS = Path(__file__).parent.parent.parent / "examples" / "models"


def example(name: str, module: Any) -> dict[str, Any]:
    """The names of one of the example models, written for `module`."""
    source = MODELS / name
    made = types.ModuleType(f"{source.stem}_by_{module.__name__}")
    sys.modules[made.__name__] = made  # where torch.compile looks for what a function refers to
    text = re.sub(
        r"^(import|from) tenfold\b", rf"\1 {module.__name__}", source.read_text(), flags=re.MULTILINE
    )
    exec(compile(text, str(source), "exec"), made.__dict__)
    return made.__dict__


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
