"""Training steps, timed: Tenfold compiled and recorded lazily, JAX, PyTorch eager and torch.compile, from the
same weights on the same batch, each step's loss read. The first losses of all must agree."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import unittest.mock
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import example_models
from benchmarks.harness import OURS, ROOT, Benchmark, Sample
from benchmarks.models import TASKS, TIMED, Task, training_step

Step = Callable[[], float]
"""Takes one step and returns its loss."""


def initial_weights(task: Task) -> dict[str, np.ndarray]:
    import torch

    torch.manual_seed(0)
    return {key: each.numpy().copy() for key, each in task.build(torch).state_dict().items()}


def pytorch(task: Task, weights: Mapping[str, np.ndarray], compiled: bool) -> Step:
    import torch

    model = task.build(torch)
    model.load_state_dict({key: torch.tensor(each) for key, each in weights.items()})
    x, y = (torch.tensor(each) for each in task.batch())
    if compiled:
        model = torch.compile(model)
    step = training_step(torch, model, task.lr)
    return lambda: step(x, y).item()


def tenfold(task: Task, weights: Mapping[str, np.ndarray], compiled: bool) -> Step:
    import tenfold as tn

    model = task.build(tn)
    model.load_state_dict({key: tn.tensor(each) for key, each in weights.items()})
    x, y = (tn.tensor(each) for each in task.batch())
    step = training_step(tn, model, task.lr)
    if compiled:
        step = tn.compile(step)
    return lambda: step(x, y).item()


def jax(task: Task, weights: Mapping[str, np.ndarray]) -> Step:
    from benchmarks import jax_models

    model = jax_models.MODELS.get(task.name)
    if model is None:
        from benchmarks import jax_example_models

        model = jax_example_models.MODELS[task.name]
        weights = jax_example_models.trained(task.name, weights)
    state = jax_models.initial_state(jax_models.taken_over(task.name, weights))
    step = jax_models.training_step(model, task.lr)
    x, y = task.batch()
    x, y = jax_models.input_of(task.name, x), jax_models.jnp.array(y)

    def run() -> float:
        nonlocal state
        state, loss = step(state, x, y)
        return float(loss)

    return run


def contenders(task: Task) -> dict[str, Step]:
    weights = initial_weights(task)
    return {
        OURS: tenfold(task, weights, compiled=True),
        "lazy": tenfold(task, weights, compiled=False),
        "JAX": jax(task, weights),
        "PyTorch": pytorch(task, weights, compiled=False),
        "torch.compile": pytorch(task, weights, compiled=True),
    }


def timed(step: Step) -> Sample:
    """Seconds a step, over a tenth of a second after some steps that do not count: threads of the contender
    before still spin for a while, and the data has to come back into the caches."""

    def mean(seconds: float) -> float:
        count, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds or not count:
            step()
            count += 1
        return passed / count

    def sample() -> float:
        mean(0.03)
        return mean(0.1)

    return sample


def steps(task: Task, ours: str) -> Callable[[Path], Mapping[str, Sample]]:
    """All contenders, with the one named `ours` as Tenfold's."""

    def prepare(folder: Path) -> Mapping[str, Sample]:
        from tenfold.runtime import tiers
        from tenfold.runtime.background import background

        found = contenders(task)
        with unittest.mock.patch.object(tiers, "WORTH", 0):  # programs are optimised after their first run
            losses = {name: [step() for _ in range(3)] for name, step in found.items()}
        background.wait()
        for name, values in losses.items():
            # Adam's first step goes by the gradient's sign, which rounding decides where the gradient is
            # nearly zero: a peer must agree on the first loss, we on the losses after it too.
            count = 3 if name in (OURS, "lazy") else 1
            if not np.allclose(values[:count], losses["PyTorch"][:count], rtol=1e-3):
                raise RuntimeError(f"{task.name}: the losses differ: {losses}")
        mine = found.pop(ours)
        found = {OURS: mine, **{name: step for name, step in found.items() if name not in (OURS, "lazy")}}
        return {name: timed(step) for name, step in found.items()}

    return prepare


def first_step(task: Task) -> Callable[[Path], Mapping[str, Sample]]:
    """From the start of a process, imports and all, to the first loss; nothing cached."""

    def prepare(folder: Path) -> Mapping[str, Sample]:
        weights = folder / "weights.npz"
        arrays: dict[str, Any] = dict(initial_weights(task))
        np.savez(weights, **arrays)

        def sample(name: str) -> Sample:
            command = [sys.executable, "-m", "benchmarks.training", name, task.name, str(weights)]
            settings = {**os.environ, "TENFOLD_CACHE_DIR": "", "JAX_ENABLE_COMPILATION_CACHE": "false"}

            def run() -> float:
                start = time.perf_counter()
                subprocess.run(command, cwd=ROOT, env=settings, check=True, stdout=subprocess.DEVNULL)
                return time.perf_counter() - start

            return run

        return {OURS: sample("tenfold"), "JAX": sample("jax"), "PyTorch": sample("pytorch")}

    return prepare


def take_first_step(contender: str, task_name: str, file: str) -> None:
    task = {**TASKS, **example_models.TASKS}[task_name]
    with np.load(file) as stored:
        weights = dict(stored)
    made: dict[str, Callable[[], Step]] = {
        "tenfold": lambda: tenfold(task, weights, compiled=True),
        "jax": lambda: jax(task, weights),
        "pytorch": lambda: pytorch(task, weights, compiled=False),
    }
    print(made[contender]()(), flush=True)
    os._exit(0)  # what a contender does to shut down is not part of its first step


BENCHMARKS = (
    *(
        Benchmark(f"step-{task.name}", f"Compiled step, {task.title}", "JAX", 1.05, steps(task, OURS), 61)
        for task in TIMED
    ),
    *(
        Benchmark(f"lazy-{task.name}", f"Lazy step, {task.title}", "JAX", 1.5, steps(task, "lazy"), 61)
        for task in TIMED
        if task.name != "xor"
    ),
    *(
        Benchmark(f"first-{task.name}", f"To the first step, {task.title}", "JAX", 0.5, first_step(task), 3)
        for task in (*TASKS.values(), *example_models.TASKS.values())
    ),
)


if __name__ == "__main__":
    take_first_step(*sys.argv[1:])
