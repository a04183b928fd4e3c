"""The XLA engine: data goes over and comes back whole, missing devices, versions, saved programs."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import tracemalloc

import jaxlib.version
import numpy as np
import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import ALL
from tenfold.base.errors import DeviceError, EngineError, MissingEngine, OutOfMemory
from tenfold.engines import xla
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.mlir import stablehlo
from tenfold.runtime import compile

CPU = Device("cpu")


def numbers(dtype: dtypes.DType) -> np.ndarray:
    """Elements of random bits, so NaNs are among the floats."""
    bits = np.random.default_rng(0).integers(0, 256, 24 * dtype.itemsize).astype(np.uint8)
    return bits > 127 if dtype.kind == "bool" else bits.view(dtype.numpy)


LAYOUTS = {
    "dense": lambda a: a.reshape(2, 3, 4),
    "zero-dimensional": lambda a: a[:1].reshape(()),
    "empty": lambda a: a[:0].reshape(0, 3),
    "transposed": lambda a: a.reshape(4, 6).T,
    "column-major": lambda a: np.asfortranarray(a.reshape(4, 6)),
    "with gaps": lambda a: a.reshape(4, 6)[::2, 1::3],
    "backwards": lambda a: a[::-1],
    "stretched": lambda a: np.broadcast_to(a[:3], (4, 3)),
    "one element in": lambda a: a[1:],
    "one long": lambda a: a.reshape(1, 24, 1),
}


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_data_goes_over_and_comes_back_whole(dtype):
    for name, layout in LAYOUTS.items():
        array = layout(numbers(dtype))
        for writeable in (True, False):
            given = array.copy(order="K") if writeable else array
            given.flags.writeable = writeable and name != "stretched"
            found = xla.fetch(xla.put(given, CPU))
            assert found.dtype == array.dtype and found.shape == array.shape, name
            assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(array).tobytes(), name
            assert not found.flags.writeable


def test_data_that_is_not_aligned_is_computed_with():
    raw = np.zeros(4 * 64 + 1, np.uint8)
    for offset in (0, 1):
        array = raw[offset : offset + 256].view(np.float32)
        array[:] = np.arange(64)
        assert (tn.from_numpy(array) + 1).tolist() == list(range(1, 65))


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_a_tensor_does_not_see_later_writes_to_its_array(dtype):
    for make in (tn.tensor, lambda a: tn.tensor([a[0], a[1], a[2]]), lambda a: tn.asarray(a, copy=True)):
        array = np.array([0, 1, 1]).astype(dtype.numpy)
        x = make(array)
        lazy = x.clone()
        array[:] = 0
        assert x.tolist() == lazy.tolist() == [0, 1, 1]


def test_a_view_of_an_array_is_copied_too():
    array = np.arange(6.0).reshape(2, 3)
    for view in (array.T, array[:, ::2], array[0], array[::-1]):
        before = view.tolist()
        x = tn.tensor(view)
        array += 10
        assert x.tolist() == before
        array -= 10


def test_from_numpy_reads_the_arrays_own_memory_until_it_is_evaluated():
    array = np.arange(4.0)
    x = tn.from_numpy(array)
    array[0] = 7
    assert x.tolist()[0] == 7
    x += 1
    assert array[0] == 7  # in-place operators give the tensor new memory


def test_what_numpy_returns_cannot_be_written():
    x = tn.ones(3) + 1
    array = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5


def test_a_device_that_is_not_there():
    with pytest.raises(DeviceError, match=r"there is no cpu:3: this machine has 1 cpu device\(s\)") as raised:
        xla.put(np.ones(1), Device("cpu:3"))
    assert "tenfold doctor" in raised.value.help
    with pytest.raises(DeviceError, match="there is no cpu:3"):
        tn.ones(2, device="cpu:3").eval()


def test_cuda_without_its_plugin_says_what_to_install(monkeypatch):
    monkeypatch.setattr(xla, "find_cuda_plugin", lambda: None)
    monkeypatch.setattr(xla, "_clients", {})
    with pytest.raises(DeviceError, match="needs XLA's CUDA plugin, which is not installed") as raised:
        tn.ones(2, device="cuda")
    assert "pip install jax-cuda13-plugin" in raised.value.help


def test_a_compiled_program_survives_being_saved():
    x = Value(TensorType(dtypes.float32, (3,)))
    module = stablehlo.emit(Function([x], [flat.mul(x, x), flat.exp(x)]))
    executable = xla.compile(module, CPU)
    again = xla.deserialize(xla.serialize(executable), module, CPU)
    array = np.float32([1, 2, 3])
    for first, second in zip(executable([xla.put(array, CPU)]), again([xla.put(array, CPU)]), strict=True):
        assert xla.fetch(first).tobytes() == xla.fetch(second).tobytes()
    assert "multiply" in executable.hlo()
    for damaged in (b"", b"not a program", xla.serialize(executable)[:100]):
        with pytest.raises(EngineError, match="XLA: "):
            xla.deserialize(damaged, module, CPU)


def test_an_option_that_xla_lacks_is_left_out_with_a_warning(monkeypatch):
    lacking = ("xla_such_as_no_version_has", True)
    monkeypatch.setitem(xla.OPTIONS, "cpu", [lacking])
    x = Value(TensorType(dtypes.float32, (2,)))
    with pytest.warns(UserWarning, match="XLA has no option xla_such_as_no_version_has"):
        xla.compile(stablehlo.emit(Function([x], [flat.exp(x)])), CPU)
    assert xla.OPTIONS["cpu"] == []


def test_other_errors_that_name_an_option_are_raised(monkeypatch):
    wrong = ("xla_backend_optimization_level", "high")
    monkeypatch.setitem(xla.OPTIONS, "cpu", [wrong])
    x = Value(TensorType(dtypes.float32, (2,)))
    with pytest.raises(EngineError, match="xla_backend_optimization_level"):
        xla.compile(stablehlo.emit(Function([x], [flat.exp(x)])), CPU)
    assert xla.OPTIONS["cpu"] == [wrong]


def test_a_program_given_the_wrong_buffers_raises_an_error_of_ours():
    x = Value(TensorType(dtypes.float32, (3,)))
    executable = xla.compile(stablehlo.emit(Function([x], [flat.exp(x)])), CPU)
    for buffers in ([], [xla.put(np.ones(2, np.float32), CPU)]):
        with pytest.raises(EngineError, match="XLA: "):
            executable(buffers)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 17 bytes\nand more"), OutOfMemory),
        (MemoryError(), OutOfMemory),
        (RuntimeError("INTERNAL: something else\nand more"), EngineError),
        (RuntimeError(""), EngineError),
    ],
)
def test_an_engines_exception_becomes_one_line_of_ours(error, expected):
    found = xla.translate(error)
    assert type(found) is expected and "\n" not in found.message
    assert xla.translate(found) is found


@pytest.mark.parametrize("version", ["0.9.2", "0.12.0", "1.0.0"])
def test_a_jaxlib_of_another_version_is_refused(version, monkeypatch):
    monkeypatch.setattr(jaxlib.version, "__version__", version)
    with pytest.raises(
        MissingEngine, match=rf"jaxlib {version} is not one that this Tenfold knows"
    ) as raised:
        stablehlo.jaxlib_version.__wrapped__()
    assert raised.value.help == "pip install 'jaxlib>=0.10,<0.12'"


@pytest.mark.parametrize("version", ["0.10.2", "0.11.0", "0.11.2.dev20260101"])
def test_jaxlibs_of_versions_that_are_known(version, monkeypatch):
    monkeypatch.setattr(jaxlib.version, "__version__", version)
    assert stablehlo.jaxlib_version.__wrapped__() == version


def test_without_jaxlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib.version", None)
    with pytest.raises(
        MissingEngine, match="StableHLO and XLA need jaxlib, which cannot be imported"
    ) as raised:
        stablehlo.jaxlib_version.__wrapped__()
    assert isinstance(raised.value, ImportError)
    assert raised.value.help == "pip install 'jaxlib>=0.10,<0.12'"


TWO_DEVICES = """
    import numpy as np
    import tenfold as tn

    there = tn.tensor([1.0, 2.0], device="cpu:1")
    here = tn.tensor([3.0, 4.0])
    assert str(there.device) == "cpu:1" and str(here.device) == "cpu"
    total = (there * 2).sum()
    assert str(total.device) == "cpu:1" and total.item() == 6.0
    assert (there.to("cpu") + here).tolist() == [4.0, 6.0]
    assert (here.to("cpu:1") + there).tolist() == [4.0, 6.0]
    assert str(tn.ones(2, device="cpu:1").eval().device) == "cpu:1"
    assert (there + tn.tensor(5.0)).tolist() == [6.0, 7.0]
    buffer = (there + 1).eval()._buffer()
    assert buffer._sharding._device.id == 1
    with tn.device("cpu:1"):
        assert str(tn.zeros(2).device) == "cpu:1"
    tn.eval(there + 1, here + 1)
    try:
        there + here
    except tn.DeviceError as error:
        print(error.message, "|", error.help)
    try:
        tn.ones(1, device="cpu:2").eval()
    except tn.DeviceError as error:
        print(error.message)
"""


def test_two_cpu_devices():
    environment = os.environ | {"TENFOLD_CPU_DEVICES": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(TWO_DEVICES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "operands are on cpu:1 and cpu | move one with .to('cpu:1')",
        "there is no cpu:2: this machine has 2 cpu device(s)",
    ]


def test_a_number_is_read_when_the_run_that_computes_it_has_ended():
    memory = ctypes.c_int32(-12345)  # what lies there before

    class Late:
        def is_ready(self):
            return False

        def block_until_ready(self):
            memory.value = 7

        def unsafe_buffer_pointer(self):
            return ctypes.addressof(memory)

    assert xla.number(Late(), dtypes.int32, CPU) == 7
    memory.value = -12345
    assert xla.pointer(Late()) == ctypes.addressof(memory) and memory.value == 7


def test_calls_leave_nothing_behind(monkeypatch):
    for module in (xla, compile):
        monkeypatch.setattr(module, "TURNS", 7)
    value = Value(TensorType(dtypes.float32, (3,)))
    executable = xla.compile(stablehlo.emit(Function([value], [value + value])), CPU)
    buffer = xla.put(np.ones(3, np.float32), CPU)
    double = tn.compile(lambda x: x * 2)
    x = tn.ones(3).eval()
    for call in (lambda: executable([buffer])[0].block_until_ready(), lambda: double(x)):
        call()
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.take_snapshot()
            for _ in range(500):
                call()
            changes = tracemalloc.take_snapshot().compare_to(before, "filename")
            own = [change for change in changes if change.traceback[0].filename != tracemalloc.__file__]
            assert sum(change.count_diff for change in own) < 50
        finally:
            tracemalloc.stop()


def test_results_of_any_dtype_and_size_are_read(on_xla):
    for x in (tn.zeros(0), tn.tensor([1.0], dtype=tn.bfloat16)):
        unread, other = x * 2, tn.ones(1) * 3
        tripled = tn.compile(lambda x: x * 3)(x)
        assert [unread.tolist(), other.tolist()] == [[2.0] * x.numel(), [3.0]]
        assert tripled.tolist() == [3.0] * x.numel()
