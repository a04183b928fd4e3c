"""ResNet-50 trained in mixed precision with SGD, images channels last; `module` is torch or tenfold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.steps import example, stepping


def training(module: Any, batch: int, wrap: Callable[..., Any]) -> Callable[[], Any]:
    """A step of training. `wrap(step, losses)` compiles the step, or the loss in the dict `losses` alone."""
    module.manual_seed(0)
    model = example("resnet.py", module)["resnet50"]().to(device="cuda", memory_format=module.channels_last)
    optimizer = module.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    generator = np.random.default_rng(0)
    images = module.tensor(generator.normal(size=(batch, 3, 224, 224)).astype(np.float32))
    x = images.to("cuda").contiguous(memory_format=module.channels_last)
    y = module.tensor(generator.integers(0, 1000, batch)).to("cuda")

    def loss_of(x: Any, y: Any) -> Any:
        with module.autocast("cuda", dtype=module.bfloat16):
            return module.nn.functional.cross_entropy(model(x), y)

    run = stepping(loss_of, optimizer, wrap)
    return lambda: run(x, y)
