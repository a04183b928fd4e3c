"""What the core promises about speed: importing it, recording an op, calling a compiled function, the time
from the start of a process to its first result, and building StableHLO. Each function prepares the
contenders of one benchmark; a peer is imported only there, so that `--only` pays for nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.first_result import chain, inputs, with_numpy
from benchmarks.harness import OURS, Benchmark, Sample, first_line, import_time, statement


def record_one_op(folder: Path) -> Mapping[str, Sample]:
    """`x + y` of one element: Tenfold records it and evaluates nothing, its peers compute it at once."""
    import jax.numpy as jnp
    import torch

    import tenfold as tn

    x, y = tn.ones(1).eval(), tn.ones(1).eval()
    return {
        OURS: statement("x + y", x=x, y=y),
        "PyTorch": statement("add(x, y)", add=torch.add, x=torch.ones(1), y=torch.ones(1)),
        "JAX": statement("x + y", x=jnp.ones(1), y=jnp.ones(1)),
    }


def call_compiled(folder: Path) -> Mapping[str, Sample]:
    """A compiled function of ten small inputs that are already on the device."""
    import jax
    import jax.numpy as jnp
    import torch

    import tenfold as tn

    def total(*values: Any) -> Any:
        result = values[0]
        for value in values[1:]:
            result = result + value
        return result

    ten = range(10)
    return {
        OURS: statement("f(*ten)", f=tn.compile(total), ten=[tn.ones(4, 4).eval() for _ in ten]),
        "JAX": statement("f(*ten)", f=jax.jit(total), ten=[jnp.ones((4, 4)) for _ in ten]),
        "PyTorch": statement("f(*ten)", f=total, ten=[torch.ones(4, 4) for _ in ten]),
    }


def first_result_cold(folder: Path) -> Mapping[str, Sample]:
    """Python's own start included, nothing cached."""
    fresh = (str(folder / str(number)) for number in itertools.count())
    return {
        OURS: first_result("tenfold", lambda: {"TENFOLD_CACHE_DIR": next(fresh)}),
        "ours beside jax": first_result("tenfold-beside-jax", lambda: {"TENFOLD_CACHE_DIR": next(fresh)}),
        "JAX": first_result("jax", lambda: {"JAX_ENABLE_COMPILATION_CACHE": "false"}),
    }


def first_result_cached(folder: Path) -> Mapping[str, Sample]:
    """The same with each contender's cache on disk, filled by the run that is thrown away. Tenfold compiles
    the program although it is small enough for tier 0, which would leave nothing in the cache."""
    ours, beside, jaxs = folder / "tenfold", folder / "beside", folder / "jax"
    compiled = lambda cache: {"TENFOLD_CACHE_DIR": str(cache), "TENFOLD_TIER": "xla"}
    settings = {
        "JAX_ENABLE_COMPILATION_CACHE": "true",
        "JAX_COMPILATION_CACHE_DIR": str(jaxs),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    return {
        OURS: filling(ours, first_result("tenfold", lambda: compiled(ours))),
        "ours beside jax": filling(beside, first_result("tenfold-beside-jax", lambda: compiled(beside))),
        "JAX": filling(jaxs, first_result("jax", lambda: settings)),
    }


def first_result(contender: str, environment: Callable[[], Mapping[str, str]]) -> Sample:
    ops = 200
    arguments = ["-m", "benchmarks.first_result", contender, str(ops)]
    return first_line(arguments, environment, expected=with_numpy(ops))


def filling(cache: Path, sample: Sample) -> Sample:
    """The sample, which must leave something in its cache: a cache that is not used is no cache to time."""

    def checked() -> float:
        seconds = sample()
        if not any(path.is_file() for path in cache.rglob("*")):
            raise RuntimeError(f"nothing was cached in {cache}")
        return seconds

    return checked


def build_stablehlo(folder: Path) -> Mapping[str, Sample]:
    """From a Python function to a StableHLO module, a new function each time: nothing traced is reused."""
    import jax
    import jax.numpy as jnp

    import tenfold as tn
    from tenfold.compiler import stablehlo_module

    ops = 1000

    def ours() -> Any:
        x, y = inputs()
        program = lambda x, y: chain(x, y, lambda value: value.tanh(), ops)
        return stablehlo_module(program, tn.tensor(x), tn.tensor(y))

    def jaxs() -> Any:
        program = lambda x, y: chain(x, y, jnp.tanh, ops)
        return jax.jit(program).trace(*inputs()).lower()

    for text in (ours().text(), jaxs().as_text()):
        written = text.count("stablehlo.tanh")
        if written < ops // 4:
            raise RuntimeError(f"the StableHLO has {written} tanh ops, not {ops // 4}")
    return {OURS: statement("build()", build=ours), "JAX": statement("build()", build=jaxs)}


def import_package(folder: Path) -> Mapping[str, Sample]:
    return {OURS: import_time("tenfold"), "numpy": import_time("numpy")}


BENCHMARKS = (
    Benchmark("import", "import the package", "numpy", 2, import_package),
    Benchmark("record", "record one lazy op", "PyTorch", 3, record_one_op),
    Benchmark("call", "call a compiled function, ten inputs", "JAX", 1, call_compiled),
    Benchmark("first", "start to first result, 200 ops, cold", "JAX", 0.5, first_result_cold, repeats=5),
    Benchmark(
        "first-cached", "start to first result, 200 ops, cached", "JAX", 0.5, first_result_cached, repeats=5
    ),
    Benchmark("stablehlo", "StableHLO of 1,000 ops", "JAX", 1 / 3, build_stablehlo),
)
