"""How much time and memory a process may take to read or compile a file that others wrote."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import time

from tenfold.base.errors import ArgumentError
from tenfold.mlir.stablehlo import Module

SECONDS = 60.0  # of processor time to compile a module, and one more for each megabyte
SECONDS_PER_OP = 0.05  # and more for each op, of which XLA takes a few milliseconds
VARIABLE = "TENFOLD_COMPILE_SECONDS"  # sets how many in all
MOST_SECONDS = 1e8
PER_BYTE = 64  # bytes of memory for each of the file


def compile_seconds(module: Module, data: bytes) -> float:
    """The processor time that compiling a module may take."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        return SECONDS + SECONDS_PER_OP * module.count() + len(data) / 1e6
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(named)) < MOST_SECONDS:
            return seconds
    raise ArgumentError(
        f"{VARIABLE}={named!r} is no number of seconds", help="set it to a number such as 600, or unset it"
    )


def confine(size: int, seconds: float, memory: int) -> dict[int, tuple[int, int]]:
    """No core files, and no more memory, beside what is held already, and processor time than a file of this
    size may take. What the limits of those were before."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = {}
    for limit, most in (
        (resource.RLIMIT_DATA, held() + memory + PER_BYTE * size),
        (resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds)),
    ):
        before[limit] = soft, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
    return before


def let_go(before: dict[int, tuple[int, int]]) -> None:
    """Set the limits again that were before `confine`."""
    for limit, both in before.items():
        resource.setrlimit(limit, both)


def held() -> int:
    """The bytes of this process that its limit counts; threads and libraries have taken them."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # no Linux
        return 4 << 30
