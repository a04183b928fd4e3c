"""libtenfold does not crash its host: bad arguments, random calls, threads, memory that runs out, and no
libtorch."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tenfold.base.errors import OutOfMemory
from tenfold.capi.binding import Device
from tenfold.capi.describe import describe
from tenfold.capi.locate import find_libtorch
from tests.capi.bridge import Bridge, built, library, numbers
from tests.capi.by_name import named_operators
from tests.capi.fuzzer import NAMED, TYPED, share, typed_functions

ROOT = Path(__file__).parents[2]
SEEDS = range(20)


def run(*arguments: str, checked: bool = False, **variables: str) -> subprocess.CompletedProcess[str]:
    built()
    # One thread an operator: several would wait for each other where other tests have the cores.
    alone = {"OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **alone, "TENFOLD_CHECKED": "1" if checked else "0", **variables}
    command = [sys.executable, "-X", "faulthandler", *arguments]
    # What was called with bytes that are no text may come back in a message.
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", timeout=3000
    )


@pytest.mark.parametrize("checked", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls_crash_nothing_and_leave_nothing(checked: bool, seed: int) -> None:
    done = run("-m", "tests.capi.fuzzer", "5000", str(seed), "--fenced", checked=checked)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


def test_the_seeds_come_by_every_typed_function_and_every_other_operator() -> None:
    description = describe(find_libtorch())
    typed, named = typed_functions(description), named_operators(library(), description)
    assert len(named) > 900
    for names, count in (([f.name for f in typed], TYPED), ([name for name, _ in named], NAMED)):
        assert {name for seed in SEEDS for name in share(names, seed, count)} == set(names)


@pytest.mark.slow
@pytest.mark.parametrize("checked", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_twentieth_of_a_million_random_calls_crashes_nothing(seed: int, checked: bool) -> None:
    done = run("-m", "tests.capi.fuzzer", "50000", str(seed), checked=checked)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


@pytest.mark.parametrize("checked", [False, True], ids=["plain", "checked"])
def test_bad_arguments_are_errors_with_their_codes(checked: bool) -> None:
    done = run("-m", "tests.capi.bad_arguments", checked=checked)
    assert done.returncode == 0, done.stderr[-2000:]


CHECKED = """
from tests.capi.bridge import Bridge
tn = Bridge()
tn.tn_set_place(b"train.c:7")
x = tn.tensor([1.0])
tn.made.clear()
tn.tn_set_place(b"train.c:8")
tn.tn_free(x)
tn.tn_set_place(b"train.c:9")
tn.tn_free(x)
assert tn.tn_error_code() == 4
print(tn.tn_error_message().decode())
tn.raw("tn_tensor_dim")(x)
print(tn.tn_error_message().decode())
tn.tn_set_place(b"train.c:12")
tn.tensor([2.0, 3.0])
print(tn.lib.text("tn_report_live"))
"""


def test_checked_mode_tells_where_a_handle_was_made_and_freed() -> None:
    done = run("-c", CHECKED, checked=True)
    assert done.returncode == 0, done.stderr
    freed, used, live = done.stdout.splitlines()[:3]
    assert (
        "was freed by tn_free at train.c:8; this tensor was made by tn_tensor_from_data at train.c:7" in freed
    )
    assert used.startswith("tn_tensor_dim: tensor was freed by tn_free at train.c:8")
    assert "float [2], made by tn_tensor_from_data at train.c:12" in live
    assert "1 handles were never freed" in done.stderr and "tn_free: " in done.stderr


FREED_TWICE = """
import ctypes
from tenfold.capi.binding import Device
from tests.capi.bridge import Bridge, handles
tn = Bridge()
made = {"value": tn.tn_value_int(1), "stack": tn.tn_stack_new()}
made["generator"] = tn.tn_generator_new(Device(0, -1), 1)
x = tn.tensor([1.0])
made["optimizer"] = tn.tn_optimizer_sgd(*handles([x]), 0.1)
made["module"] = tn.tn_module_compile(b"def f(x):\\n  return x")
for kind, handle in made.items():
    for _ in range(2):
        getattr(tn, f"tn_{kind}_free")(handle)
listed = tn.tn_value_tensor_list(*handles([x, x, x]))
out, count = ctypes.c_void_p(), ctypes.c_int64()
tn.tn_value_to_tensors(listed, ctypes.byref(out), ctypes.byref(count))
tn.tn_free(ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[1])
tn.tn_free_all(out, count)  # of which one is free already
tn.tn_value_free(listed)
tn.close()
"""


def test_checked_mode_says_aloud_what_is_freed_twice() -> None:
    done = run("-c", FREED_TWICE, checked=True)
    assert done.returncode == 0, done.stderr
    told = [line.split(":")[1].strip() for line in done.stderr.splitlines() if "was freed by" in line]
    kinds = ("value", "stack", "generator", "optimizer", "module")
    assert told == [*(f"tn_{kind}_free" for kind in kinds), "tn_free_all"]
    assert "never freed" not in done.stderr


THREADS = """
import sys, threading, time
from tests.capi.bridge import Bridge
library = Bridge()
wrong, counted = [], []
def work(number, until):
    tn = Bridge()
    calls = 0
    while time.monotonic() < until:
        a, b = tn.tensor([[float(number)] * 3] * 2), tn.tensor([[2.0] * 3] * 2)
        if tn.array(tn.call("add.Tensor", a, b))[0, 0] != number + 2:
            wrong.append("value")
        name = f"aten::nope_{number}_{calls}".encode()
        if tn.raw("tn_find")(name) is not None or name.decode() not in tn.tn_error_message().decode():
            wrong.append(tn.tn_error_message())
        tn.close()
        calls += 1
    counted.append(calls)
until = time.monotonic() + float(sys.argv[1])
threads = [threading.Thread(target=work, args=(i, until)) for i in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong[:3]
assert len(counted) == 8 and min(counted) > 0, counted
assert library.tn_live_tensors() == library.tn_live_objects() == 0
"""


@pytest.mark.parametrize(
    "seconds", [pytest.param("2", id="short"), pytest.param("60", id="a_minute", marks=pytest.mark.slow)]
)
def test_eight_threads_lose_no_error_and_no_handle(seconds: str) -> None:
    done = run("-c", THREADS, seconds, checked=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_first_use_from_many_threads_loads_once() -> None:
    source = """
        import ctypes, threading, sys
        library = ctypes.CDLL(sys.argv[1])
        found = []
        threads = [threading.Thread(target=lambda: found.append(library.tn_available())) for _ in range(16)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert found == [1] * 16
    """
    done = run("-c", textwrap.dedent(source), str(built().library))
    assert done.returncode == 0, done.stderr


WITHOUT = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.tn_error_message.restype = lib.tn_version.restype = ctypes.c_char_p
lib.tn_zeros.restype = lib.tn_torch_version.restype = ctypes.c_void_p
lib.tn_live_tensors.restype = ctypes.c_int64
assert lib.tn_available() == 0
print(lib.tn_error_message().decode())
assert lib.tn_version() == b"0.1.0" and lib.tn_torch_version() is None
assert lib.tn_zeros(None, ctypes.c_int64(0)) is None
assert lib.tn_error_message().startswith(b"tn_zeros: ")
assert lib.tn_call(b"aten::relu", None) == 7 == lib.tn_error_code()
assert lib.tn_cuda_available() == -1
lib.tn_free(None)
lib.tn_error_clear()
assert lib.tn_error_code() == 0 and lib.tn_error_message() == b""
"""


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nonexistent/lib.so", "cannot open shared object file"),
        ("libc.so.6", "is not libtenfold_torch.so"),
    ],
)
def test_without_libtorch_every_function_fails_with_the_reason(path: str, reason: str) -> None:
    done = run("-c", WITHOUT, str(built().library), TENFOLD_TORCH_LIBRARY=path)
    assert done.returncode == 0, done.stderr
    assert reason in done.stdout


@pytest.mark.parametrize("first", ["torch", "tenfold"])
def test_it_shares_a_process_with_pytorch(first: str) -> None:
    source = """
        import ctypes, sys
        if sys.argv[2] == "torch":
            import torch
            before = torch.ones(1000)
        library = ctypes.CDLL(sys.argv[1])
        library.tn_live_bytes.restype = ctypes.c_int64
        assert library.tn_available() == 1
        import torch
        kept = torch.ones(1000)
        assert library.tn_live_bytes() == 4000, library.tn_live_bytes()
        del kept
        assert library.tn_live_bytes() == 0
    """
    done = run("-c", textwrap.dedent(source), str(built().library), first)
    assert done.returncode == 0, done.stderr


def test_bytes_are_counted_to_the_byte(tn: Bridge) -> None:
    start = tn.tn_live_bytes()
    tn.tn_reset_peak_bytes()
    first = tn.tn_tensor_from_data((ctypes.c_float * 1000)(), 6, *numbers([1000]), None, 0)
    second = tn.tn_tensor_from_data((ctypes.c_float * 10)(), 6, *numbers([10]), None, 0)
    assert tn.tn_live_bytes() - start == 4040
    tn.tn_free(first)
    assert tn.tn_live_bytes() - start == 40
    tn.tn_free(second)
    assert tn.tn_live_bytes() == start and tn.tn_peak_bytes() - start == 4040


def test_the_host_is_called_when_memory_grows_past_a_mark(tn: Bridge) -> None:
    seen: list[int] = []
    kept: list[int] = []

    def collect(live: int, user: int) -> None:
        seen.append(live)
        while kept:
            tn.tn_free(kept.pop())

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(collect)
    mark = tn.tn_live_bytes() + 100_000
    tn.tn_set_pressure_callback(mark, callback, None)
    for _ in range(100):
        kept.append(tn.tn_tensor_from_data((ctypes.c_float * 2500)(), 6, *numbers([2500]), None, 0))
    tn.tn_set_pressure_callback(0, None, None)
    assert 5 <= len(seen) <= 12 and all(live > mark for live in seen)
    while kept:
        tn.tn_free(kept.pop())


def test_the_host_may_set_another_mark_while_it_is_called(tn: Bridge) -> None:
    seen: list[int] = []

    def collect(live: int, user: int) -> None:
        seen.append(live)
        tn.tn_set_pressure_callback(1 << 60, callback, None)

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(collect)
    tn.tn_set_pressure_callback(tn.tn_live_bytes() + 100_000, callback, None)
    for _ in range(40):
        tn.keep(tn.tn_tensor_from_data((ctypes.c_float * 10_000)(), 6, *numbers([10_000]), None, 0))
    tn.tn_set_pressure_callback(0, None, None)
    assert len(seen) == 1


def test_a_host_that_draws_random_numbers_when_it_is_called_waits_for_nothing(tn: Bridge) -> None:
    seen: list[int] = []

    def draw(live: int, user: int) -> None:
        seen.append(live)
        tn.call("rand", [4])
        tn.tn_generator_set_seed(generator, 3)

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(draw)
    generator = tn.tn_generator_new(Device(0, -1), 5)
    concentration = tn.tensor([0.5, 1.5])
    tn.tn_set_pressure_callback(0, callback, None)
    tn.keep(tn.tn_generator_state(generator))
    tn.call("_sample_dirichlet", concentration)  # its kernel allocates while it holds the generator
    tn.tensor([1.0])
    tn.tn_set_pressure_callback(0, None, None)
    tn.tn_generator_free(generator)
    assert seen


def test_the_host_is_asked_before_memory_runs_out(tn: Bridge) -> None:
    asked: list[int] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(lambda live, user: asked.append(live))
    tn.tn_set_pressure_callback(1 << 60, callback, None)
    tn.tn_debug_fail_allocation(1)
    tn.tensor([1.0])  # the allocation failed, the host was asked, and the second attempt worked
    assert len(asked) == 1
    with pytest.raises(OutOfMemory, match="out of memory"):
        tn.lib.tn_tensor_from_data(ctypes.byref(ctypes.c_float()), 6, *numbers([1 << 55]), *numbers([0]))
    assert len(asked) == 2
    tn.tn_set_pressure_callback(0, None, None)


def test_a_failing_allocation_is_an_error_and_the_library_goes_on(tn: Bridge) -> None:
    tn.tn_debug_fail_allocation(1)
    with pytest.raises(OutOfMemory, match="out of memory"):
        tn.tensor([1.0])
    assert tn.array(tn.tensor([1.0])) == [1.0]
