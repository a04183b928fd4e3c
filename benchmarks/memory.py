"""What the training steps of models.py hold in memory while they run, ours beside JAX's, by XLA's account:
arguments, results that do not lie in an argument's memory, and temporaries. `python -m benchmarks.memory`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from benchmarks.models import TASKS
from benchmarks.training import initial_weights, tenfold
from tenfold.engines.xla import Executable


def ours(name: str) -> int:
    task = TASKS[name]
    largest = 0
    start = Executable.__call__

    def measured(self: Executable, buffers: Sequence[Any], held: list[Any] | None = None) -> list[Any]:
        nonlocal largest
        largest = max(largest, self.memory())
        return start(self, buffers, held)

    Executable.__call__ = measured  # type: ignore[method-assign]
    try:
        tenfold(task, initial_weights(task), compiled=True)()
    finally:
        Executable.__call__ = start  # type: ignore[method-assign]
    return largest


def jax(name: str) -> int:
    from benchmarks import jax_models

    task = TASKS[name]
    x, y = task.batch()
    state = jax_models.initial_state(jax_models.taken_over(name, initial_weights(task)))
    step = jax_models.training_step(jax_models.MODELS[name], task.lr)
    lowered = step.lower(state, jax_models.input_of(name, x), jax_models.jnp.array(y))
    found = lowered.compile().memory_analysis()
    results = found.output_size_in_bytes - found.alias_size_in_bytes
    return found.argument_size_in_bytes + results + found.temp_size_in_bytes


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=__doc__, epilog="example: python -m benchmarks.memory"
    ).parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    print(f"{'':8}{'Tenfold':>12}{'JAX':>12}{'ratio':>8}")
    for name in TASKS:
        mine, theirs = ours(name), jax(name)
        print(f"{name:8}{mine / 1e6:>9.2f} MB{theirs / 1e6:>9.2f} MB{mine / theirs:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
