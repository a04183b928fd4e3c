"""The process's heap: memory that programs give back is kept for the next run.

XLA on the CPU takes a program's working memory from `malloc` at each run, and glibc gives large pieces back
to the system at once. The system then hands out fresh pages, zeroed one by one as they are touched: a quarter
of the processor's time in a training step that works in 100 MB.
"""

from __future__ import annotations

import ctypes
import os
import sys

# glibc's names for its settings, from malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
KEPT = 1 << 30  # bytes at the heap's end that are kept at most
OWN = (
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
)


def keep_memory(of_all_threads: bool = False) -> bool:
    """Let glibc keep large pieces of memory that are freed; whether it does. It is left alone where the user
    has settings of their own, or `TENFOLD_KEEP_MEMORY=0`.

    Only the main thread's heap can hold pieces of 64 MB and more. `of_all_threads` gives it to all threads
    that begin from now on, for programs that run in one of them."""
    if os.environ.get("TENFOLD_KEEP_MEMORY") == "0" or any(os.environ.get(each) for each in OWN):
        return False
    if not sys.platform.startswith("linux"):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    if of_all_threads and not set_option(M_ARENA_MAX, 1):
        return False
    return bool(set_option(M_MMAP_MAX, 0)) and bool(set_option(M_TRIM_THRESHOLD, KEPT))


def give_back() -> None:
    """Return all memory to the system that is free now."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)
