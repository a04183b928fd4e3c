"""Where the bytes of a `.vmfb` lie."""

import ctypes
import signal
import subprocess
import sys

import numpy as np
import pytest

from tenfold.engines import iree_memory

READ = """
import ctypes, mmap, sys
from tenfold.engines import iree_memory

file = iree_memory.guarded(b"x" * 100)
print(ctypes.string_at(file.ctypes.data + eval(sys.argv[1]), 1))
"""


@pytest.mark.parametrize("copied", [iree_memory.mapped, iree_memory.guarded])
def test_a_file_lies_at_the_start_of_a_page_with_zeros_after_it(copied):
    memory = np.frombuffer(copied(b"x" * 100), np.uint8)
    assert memory.tobytes() == b"x" * 100
    assert memory.ctypes.data % iree_memory.mmap.PAGESIZE == 0
    assert ctypes.string_at(memory.ctypes.data + 100, 200) == bytes(200)


@pytest.mark.parametrize(
    ("place", "dies"),
    [
        ("mmap.PAGESIZE - 1", False),
        ("mmap.PAGESIZE", True),
        ("-1", True),
        ("4 * (2**32 - 1)", True),
        ("-4 * 2**31", True),
    ],
)
def test_a_read_outside_of_a_file_on_trial_ends_the_process(place, dies):
    code = subprocess.run(
        [sys.executable, "-c", READ, place], capture_output=True, check=False, timeout=60
    ).returncode
    assert code == (-signal.SIGSEGV if dies else 0)


def test_guards_are_narrower_where_addresses_are_limited(monkeypatch):
    monkeypatch.setattr(iree_memory, "GUARD", 1 << 50)  # more than a process has
    assert iree_memory.guarded(b"x" * 100).tobytes() == b"x" * 100


def test_addresses_are_given_back():
    for _ in range(4096):  # of 128 GB each: more than a process has
        iree_memory.guarded(b"x")
