"""How much time and memory reading and compiling a file may take."""

from __future__ import annotations

import mmap
import subprocess
import sys
from typing import Any

import pytest

import tenfold as tn
from tenfold.exporting import limits
from tenfold.mlir import portable


def test_a_module_of_more_ops_may_be_compiled_for_longer(monkeypatch):
    def seconds(ops):
        body = " ".join(f"%{i} = stablehlo.constant dense<{i}> : tensor<i32>" for i in range(ops))
        module = portable.read(f"module {{ func.func @main() {{ {body} return }} }}".encode())
        return limits.compile_seconds(module, module.bytecode())

    assert 60 < seconds(1) < 61
    assert seconds(10_000) > 500
    monkeypatch.setenv("TENFOLD_COMPILE_SECONDS", "7.5")
    assert seconds(1) == 7.5
    for odd in ("long", "-1", "nan", "inf"):
        monkeypatch.setenv("TENFOLD_COMPILE_SECONDS", odd)
        with pytest.raises(tn.ArgumentError, match="no number of seconds"):
            seconds(1)


def test_limits_that_the_user_set_are_those_after_a_file_was_read():
    program = """if True:
    import resource
    from tenfold.exporting import limits
    chosen = {resource.RLIMIT_DATA: 900 << 20, resource.RLIMIT_CPU: 90}
    for limit, soft in chosen.items():
        resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))
    before = limits.confine(0, 1000.0, 4 << 30)
    for limit, soft in chosen.items():
        assert resource.getrlimit(limit)[0] == soft
    limits.let_go(before)
    for limit, soft in chosen.items():
        assert resource.getrlimit(limit)[0] == soft
    limits.let_go(limits.confine(0, 3.0, 1 << 20))
    for limit, soft in chosen.items():
        assert resource.getrlimit(limit)[0] == soft
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


CONFINED = """if True:
    import math, resource, time
    from tenfold.exporting import limits

    def soft(limit):
        return resource.getrlimit(limit)[0]

    began, taken = time.process_time(), limits.held()
    before = limits.confine(1 << 20, 5.0, 3 << 30)
    assert soft(resource.RLIMIT_CORE) == 0
    assert math.ceil(began + 5.0) <= soft(resource.RLIMIT_CPU) <= math.ceil(time.process_time() + 5.0)
    room = soft(resource.RLIMIT_DATA) - (3 << 30) - (64 << 20)
    assert taken <= room <= taken + (8 << 20), (taken, room)
    try:
        bytearray(4 << 30)
    except MemoryError:
        limits.let_go(before)
        assert soft(resource.RLIMIT_DATA) == before[resource.RLIMIT_DATA][0]
        assert soft(resource.RLIMIT_CPU) == before[resource.RLIMIT_CPU][0]
        print("refused")
"""


def test_a_process_is_confined_to_what_it_holds_and_what_a_file_may_take():
    done = subprocess.run([sys.executable, "-c", CONFINED], capture_output=True, text=True, timeout=120)
    assert done.stdout == "refused\n", done.stderr


def test_what_a_process_holds_is_counted_in_bytes(monkeypatch):
    before = limits.held()
    with mmap.mmap(-1, 32 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):  # what was freed is not used again
        assert 24 << 20 < limits.held() - before < 64 << 20

    def none(*args: Any, **options: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", none)
    assert limits.held() == 4 << 30  # where the system does not tell
