"""`tenfold.random`: seeds and states of the default random generators, as in `torch.random`."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.tensor.generators import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.random", name, globals())
