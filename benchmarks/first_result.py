"""The program of the start-up benchmarks, and the process that they start: `python -m benchmarks.first_result
jax 200` runs a program of 200 ops once and prints one number of its result."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

OPS_A_ROUND = 4


def chain(x: Any, y: Any, tanh: Callable, ops: int) -> Any:
    """A program of so many ops, each of which needs the one before it."""
    for _ in range(ops // OPS_A_ROUND):
        x = tanh(x * 1.01 + y) - 0.1
    return x


def inputs() -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4), np.full((4, 4), 0.5, np.float32)


def with_numpy(ops: int) -> float:
    return float(chain(*inputs(), np.tanh, ops)[0, 0])


def with_tenfold(ops: int) -> float:
    import tenfold as tn

    x, y = inputs()
    return float(chain(tn.tensor(x), tn.tensor(y), lambda value: value.tanh(), ops).numpy()[0, 0])


def with_jax(ops: int) -> float:
    import jax
    import jax.numpy as jnp

    program = jax.jit(lambda x, y: chain(x, y, jnp.tanh, ops))
    return float(np.asarray(program(*inputs()))[0, 0])


if __name__ == "__main__":
    contender, ops = sys.argv[1:]
    if contender == "tenfold":
        # As `pip install tenfold` leaves a machine. Where the package jax is installed too, jaxlib imports it
        # with the first result, whether it is used or not: "tenfold-beside-jax" times that.
        sys.modules["jax"] = None  # type: ignore[assignment]
    runs = {"tenfold": with_tenfold, "tenfold-beside-jax": with_tenfold, "jax": with_jax}
    print(runs[contender](int(ops)), flush=True)
