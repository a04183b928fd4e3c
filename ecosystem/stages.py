"""What a program of `ecosystem/programs` reports by: its stages, and the numbers that both engines must agree
on. It imports neither; the program says `import torch`, and means whichever runs it."""

from __future__ import annotations

import contextlib
import json
import os
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np

_results: dict[str, Any] = {"stages": {}, "seconds": {}}
_arrays: dict[str, np.ndarray] = {}
_random = np.random.RandomState(0)
_run = [""]
_untimed = [0.0]


def begin(run: str) -> None:
    """Begin a run of the program, which draws the same numbers as every other."""
    _run[0] = f"{run} run, "
    _untimed[0] = 0.0
    _random.seed(0)


def finish(run: str, seconds: float) -> None:
    """Report how long a run took."""
    _results["seconds"][run] = seconds - _untimed[0]
    _write()


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """A part of the program; if it fails the rest is not run."""
    try:
        yield
    except BaseException as error:
        _results["stages"][name] = (
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        )
        _results["trace"] = traceback.format_exc()
        _write()
        raise SystemExit(1) from error
    _results["stages"][name] = True
    _write()


@contextlib.contextmanager
def untimed() -> Iterator[None]:
    """What is not part of the program, and does not count."""
    start = time.time()
    yield
    _untimed[0] += time.time() - start


def compare(name: str, value: Any, kind: str = "output") -> None:
    """Numbers that must agree: an "output" to 1e-5, a "gradient" to 1e-4 of the largest, "tokens" exactly."""
    if hasattr(value, "detach"):
        value = value.detach() if kind == "tokens" else value.detach().float()
    array = value.numpy() if hasattr(value, "numpy") else value
    _arrays[f"{kind}/{_run[0]}{name}"] = np.asarray(array)


def gradients(module: Any, prefix: str = "") -> None:
    for name, parameter in module.named_parameters():
        if parameter.grad is not None:
            compare(prefix + name, parameter.grad, "gradient")


def same_weights(torch: Any, module: Any, scale: float = 0.08) -> None:
    """Give a module weights that do not depend on who draws them."""
    with torch.no_grad():
        for _, parameter in module.named_parameters():
            drawn = (_random.randn(*parameter.shape) * scale).astype("float32")
            parameter.copy_(torch.tensor(drawn))


def numbers(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype("float32")


def whole(low: int, high: int, *shape: int) -> np.ndarray:
    return _random.randint(low, high, shape)


def folder() -> str:
    """Where a program may leave files."""
    return os.environ["ECOSYSTEM_OUT"]


def _write() -> None:
    with open(os.path.join(folder(), "results.json"), "w", encoding="utf-8") as file:
        json.dump(_results, file)
    np.savez(os.path.join(folder(), "arrays.npz"), **_arrays)
