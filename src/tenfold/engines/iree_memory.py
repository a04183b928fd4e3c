"""The memory that IREE reads a `.vmfb` in.

IREE does not check every index in a file: what it reads outside of the file depends on where the file lies.
So a file always lies on whole pages with zeros after it. A file on trial (`guarded`) lies between ranges of
addresses that nobody may read, wider than an index in a file can reach: IREE dies of every read outside, and
a file that passes is read inside of its pages wherever they lie.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap

import numpy as np

from tenfold.base.errors import OutOfMemory

# A file's numbers have 32 bits and count elements of up to 16 bytes.
GUARD = 1 << 36
LEAST_GUARD = 1 << 30  # where addresses are limited
PROT_NONE = 0


def mapped(data: bytes) -> mmap.mmap:
    """A copy of the file on pages of its own."""
    pages = mmap.mmap(-1, len(data))
    pages[:] = data
    return pages


def guarded(data: bytes) -> np.ndarray:
    """A copy of the file on pages of its own, between addresses that end the process that reads them."""
    guard, addresses = _reserved(len(data))
    pages = np.frombuffer(addresses, np.uint8, len(data), guard)
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(pages.ctypes.data, len(data), mmap.PROT_READ | mmap.PROT_WRITE):
        raise OutOfMemory("no memory to read the file in")
    ctypes.memmove(pages.ctypes.data, data, len(data))
    return pages


def _reserved(size: int) -> tuple[int, mmap.mmap]:
    """Addresses for the file with a guard on both sides, and how wide the guard is."""
    guard = GUARD
    while guard >= LEAST_GUARD:
        with contextlib.suppress(OSError):
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            return guard, mmap.mmap(-1, guard + size + guard, flags=flags, prot=PROT_NONE)
        guard //= 2
    raise OutOfMemory("no addresses to read the file between", help="raise the limit: ulimit -v")
