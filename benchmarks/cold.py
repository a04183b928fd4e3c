"""Code that is cold: what runs for the first time, and what has another size each time. Processes are new and
nothing is cached for the rows of first results; the others are warm but for their sizes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import cold_programs as programs
from benchmarks.harness import OURS, Benchmark, Sample, first_line, printed_seconds

UNCACHED = {"TENFOLD_CACHE_DIR": "", "JAX_ENABLE_COMPILATION_CACHE": "false"}


def in_new_process(program: str, *also: str) -> Callable[[Path], Mapping[str, Sample]]:
    """A program of `cold_programs.py` in a process of its own, the import not counted."""

    def contenders(folder: Path) -> Mapping[str, Sample]:
        modules = {OURS: "tenfold", "PyTorch": "torch", "JAX": "jax"}
        return {
            name: printed_seconds(["-m", "benchmarks.cold_programs", modules[name], program], UNCACHED)
            for name in (OURS, "PyTorch", *also)
        }

    return contenders


def first_result(folder: Path) -> Mapping[str, Sample]:
    """The start of Python and the imports included."""
    ours = "import tenfold as lib; print((lib.ones(2, 3) @ lib.ones(3, 2)).tanh().sum().item(), flush=True)"
    jax = "import jax.numpy as j; print(float(j.tanh(j.ones((2, 3)) @ j.ones((3, 2))).sum()), flush=True)"
    codes = {OURS: ours, "PyTorch": ours.replace("tenfold", "torch"), "JAX": jax}
    return {
        name: first_line(["-c", code], lambda: UNCACHED, expected=3.9802198) for name, code in codes.items()
    }


def averaged(rounds: int, run: Callable[[], Any]) -> Sample:
    """Seconds of a run, on the average of so many."""

    def sample() -> float:
        start = time.perf_counter()
        for _ in range(rounds):
            run()
        return (time.perf_counter() - start) / rounds

    return sample


def libraries() -> Iterator[tuple[str, Any]]:
    import torch

    import tenfold

    yield OURS, tenfold
    yield "PyTorch", torch


def new_shapes(folder: Path) -> Mapping[str, Sample]:
    import jax.numpy as jnp

    def of(run: Callable[[int], Any], rounds: int) -> Sample:
        sizes = itertools.count(2)
        return averaged(rounds, lambda: run(next(sizes)))

    def with_jax(size: int) -> float:
        return jnp.tanh(jnp.ones((size, 3)) @ jnp.ones((3, 2))).sum().item()

    found = {name: of(partial(programs.new_shape, lib), 100) for name, lib in libraries()}
    return {**found, "JAX": of(with_jax, 5)}


def growing(folder: Path) -> Mapping[str, Sample]:
    import jax.numpy as jnp

    def of(grow: Callable[[Any], Any], start: Any, rounds: int) -> Sample:
        sequence = [start]

        def run() -> None:
            sequence[0] = grow(sequence[0])

        return averaged(rounds, run)

    def with_jax(sequence: Any) -> Any:
        sequence = jnp.concatenate([sequence, jnp.ones(1)])
        sequence.sum().item()
        return sequence

    found = {name: of(partial(programs.grown, lib), lib.zeros(1), 100) for name, lib in libraries()}
    return {**found, "JAX": of(with_jax, jnp.zeros(1), 5)}


def reading(folder: Path) -> Mapping[str, Sample]:
    import jax.numpy as jnp

    def with_jax(rounds: int) -> None:
        x = jnp.ones(8)
        for _ in range(rounds):
            x.sum().item()

    def of(read: Callable[[int], Any], rounds: int) -> Sample:
        once = averaged(1, lambda: read(rounds))
        return lambda: once() / rounds

    found = {name: of(partial(programs.read_in_loop, lib), 2000) for name, lib in libraries()}
    return {**found, "JAX": of(with_jax, 500)}


def policy(folder: Path) -> Mapping[str, Sample]:
    return {name: averaged(10, programs.Policy(lib).episode) for name, lib in libraries()}


BENCHMARKS = (
    Benchmark(
        "cold-print",
        "first softmax, printed",
        "PyTorch",
        0.6,
        in_new_process("first_print", "JAX"),
        repeats=5,
    ),
    Benchmark(
        "cold-step", "first step, 4-8-1, Adam", "PyTorch", 0.1, in_new_process("first_step"), repeats=5
    ),
    Benchmark("new-shape", "a new shape each iteration", "PyTorch", 40, new_shapes, repeats=5),
    Benchmark("growing", "a sequence grown by cat, and read", "PyTorch", 25, growing, repeats=5),
    Benchmark("reading", "a number read each iteration", "PyTorch", 1.6, reading),
    Benchmark("policy", "an episode of a policy gradient", "PyTorch", 2, policy, repeats=5),
    Benchmark(
        "cold-tokens",
        "40 tokens of a 2-layer GPT, cold",
        "PyTorch",
        16,
        in_new_process("sample_tokens"),
        repeats=3,
    ),
    Benchmark(
        "start",
        "start to first result, 4 ops, cold",
        "PyTorch",
        0.4,
        first_result,
        repeats=5,
        also=(("JAX", 0.2),),
    ),
)
