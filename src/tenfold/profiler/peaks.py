"""The most that a device can do: arithmetic and memory traffic, by which a kernel's share of it is judged."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Peaks(NamedTuple):
    """Operations and bytes a second."""

    flops: float
    bytes: float

    def share(self, flops: float, bytes: float, seconds: float) -> float:
        """How near to the roofline: the least time that this much takes, over the time that it took. It is
        over 1 for what lies in caches."""
        return max(flops / self.flops, bytes / self.bytes) / seconds if seconds else 0.0


# By the vendor's data sheets: dense bfloat16 products, and memory.
GPUS = {
    "H200": Peaks(989e12, 4.8e12),
    "H100": Peaks(989e12, 3.35e12),
    "B200": Peaks(2250e12, 8e12),
    "A100": Peaks(312e12, 2.0e12),
    "L4": Peaks(121e12, 0.3e12),
    "L40": Peaks(181e12, 0.86e12),
}


def of_gpu(kind: str) -> Peaks | None:
    """Those of a GPU by its name, if they are known."""
    return next((peaks for name, peaks in GPUS.items() if name in kind.upper()), None)


@functools.cache
def of_cpu() -> Peaks:
    """Those of this machine's processor, measured: a float32 product of NumPy's, and a copy."""
    x = np.ones((768, 768), np.float32)
    memory = np.ones(1 << 24, np.float32)
    target = np.empty_like(memory)
    return Peaks(
        2 * 768**3 / _best(lambda: x @ x), 2 * memory.nbytes / _best(lambda: np.copyto(target, memory))
    )


def _best(run: Callable[[], Any]) -> float:
    times = []
    for _ in range(4):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
