"""The XLA engine, on jaxlib alone: devices, buffers, compiling and running StableHLO modules."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import math
import operator
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import (
    DeviceError,
    EngineError,
    MissingDevice,
    MissingEngine,
    NoData,
    OutOfMemory,
    TenfoldError,
    UnsupportedError,
)
from tenfold.base.forking import forkable
from tenfold.base.heap import keep_memory
from tenfold.base.meshes import Partitioned, Sharding
from tenfold.base.warning import warn
from tenfold.flat import structured
from tenfold.flat.ir import TensorType
from tenfold.flat.structured import PYTHON
from tenfold.mlir import stablehlo
from tenfold.mlir.interrupts import aside, is_from_handler, once, pass_on, uninterrupted
from tenfold.ops import kernels, tile_kernels

_lock = forkable(threading.RLock())
_clients: dict[str, Client] = {}
meshes: Any = None  # does the same over several devices: `sharded.py`, which says so when it is imported
cluster: Any = None  # the other processes, if there are any: see `processes.py`
in_use: list[Any] = []  # the devices of all platforms that were asked for
_plugins: list[Any] = []  # whose profilers are not registered yet
_alive: weakref.WeakSet[Executable] = weakref.WeakSet()
_forked = False


@once
def jaxlib() -> SimpleNamespace:
    """jaxlib's client interface."""
    version = stablehlo.jaxlib_version()
    from jaxlib import _jax, xla_client

    wide = _jax.config.Config("tenfold_enable_x64", True)

    class Sharding(xla_client.SingleDeviceSharding):
        """Where an array lies: on one device, whole."""

        memory_kind = None

        def __init__(self, device: Any):
            super().__init__(device)
            self.on_host = device.platform == "cpu"

        def _to_xla_hlo_sharding(self, rank: int) -> Any:
            return xla_client.HloSharding.replicate()

    handler = xla_client.array_result_handler
    if version.startswith("0.10."):  # which looks at each array again unless it is told not to
        handler = functools.partial(handler, _skip_checks=True)
    return SimpleNamespace(
        xc=xla_client,
        _jax=_jax,
        version=version,
        wide=wide,
        sharding=functools.cache(Sharding),
        handler=handler,
    )


def headers() -> Path:
    """The folder of the headers for C++ that XLA calls."""
    from jaxlib import xla_client

    return Path(xla_client.__file__).with_name("include")


# Counts the calls of programs. jaxlib notes the Python frames of each, and lets go of them when it is told:
# JAX has a hook in the garbage collector for it, which runs too seldom here.
turn = itertools.count(1).__next__
TURNS = 0xFFF  # it is told after each 4,096 calls


def let_go() -> None:
    """Give back what jaxlib keeps of calls that have ended."""
    jaxlib()._jax.collect_garbage()


class Client:
    """A platform (cpu or cuda) of XLA's, with its devices."""

    def __init__(self, platform: str):
        self.platform = platform
        self.client = _make_client(platform)
        self.devices = self.client.local_devices()
        if not in_use:
            os.register_at_fork(after_in_child=_leave_behind)
        in_use.extend(self.devices)

    def device(self, index: int) -> Any:
        if index >= len(self.devices):
            raise DeviceError(
                f"there is no {self.platform}:{index}: "
                f"this machine has {len(self.devices)} {self.platform} device(s)",
                help="see `tenfold doctor`",
            )
        return self.devices[index]


def client(platform: str) -> Client:
    found = _clients.get(platform)
    if found is None:
        with _lock, uninterrupted():
            found = _clients.get(platform) or _clients.setdefault(platform, Client(platform))
    return found


def require_unforked() -> None:
    """Raise in a process that was forked from one that has used XLA."""
    if _forked:
        _refuse_fork()


def _leave_behind() -> None:
    """In a child of this process nothing runs: XLA's threads stayed behind, and it would wait forever."""
    global _forked
    _forked = True
    _clients.clear()
    in_use.append(None)  # there is no short way either


def _refuse_fork() -> NoReturn:
    raise EngineError(
        "a process forked from one that has used XLA cannot compute",
        help="start it by multiprocessing's 'spawn', or fork before the first result",
    )


def _make_client(platform: str) -> Any:
    require_unforked()
    xc = jaxlib().xc
    if platform == "cpu":
        # A thread of XLA's own for each run would cost small programs more than they take; and large ones use
        # all cores whoever waits for them.
        keep_memory()
        count = int(os.environ.get("TENFOLD_CPU_DEVICES", "1"))
        if cluster is not None:
            return cluster.cpu_client(xc, count)
        return xc.make_cpu_client(asynchronous=False, num_devices=count)
    if platform != "cuda":
        raise MissingDevice(f"there is no device {platform!r} here", help="use the CPU or CUDA")
    plugin = find_cuda_plugin()
    if plugin is None:
        raise MissingDevice(
            "device 'cuda' needs XLA's CUDA plugin, which is not installed",
            help="pip install jax-cuda13-plugin jax-cuda13-pjrt, of jaxlib's version, or use device='cpu'",
        )
    try:
        if not xc.pjrt_plugin_loaded("cuda"):
            _plugins.append(xc.load_pjrt_plugin_dynamically("cuda", plugin))
            _let_plugin_hear_of_calls(_plugins[-1])
        if not xc.pjrt_plugin_initialized("cuda"):
            xc.initialize_pjrt_plugin("cuda")
        options, further = xc.generate_pjrt_gpu_plugin_options(), []
        if cluster is not None:
            options |= {"node_id": cluster.rank, "num_nodes": cluster.world}
            further = [cluster.runtime]
        return xc.make_c_api_client("cuda", options, *further)
    except Exception as error:
        pass_on(error)
        raise DeviceError(
            f"the CUDA plugin does not start: {_first_line(error)}", help="see `tenfold doctor`"
        ) from None


def _let_plugin_hear_of_calls(plugin: Any) -> None:
    """Let functions that are registered for CUDA be known to the plugin, which has a table of its own."""
    try:
        from jax_cuda13_plugin import cuda_plugin_extension  # type: ignore[import-not-found]
    except ImportError:
        return  # without it there is no linear algebra, which says so when it is asked for
    tell = functools.partial(cuda_plugin_extension.register_custom_call_target, plugin)
    jaxlib().xc.register_custom_call_handler("CUDA", tell)


def find_cuda_plugin() -> str | None:
    """The path of an installed PJRT plugin for CUDA."""
    import glob

    try:
        import jax_plugins  # type: ignore[import-not-found]
    except ImportError:
        return None
    for folder in jax_plugins.__path__:
        found = sorted(glob.glob(os.path.join(folder, "xla_cuda*", "xla_cuda_plugin.so")))
        if found:
            return found[-1]
    return None


def _resolve(device: Device) -> tuple[Client, Any]:
    place = client(device.type)
    return place, place.device(device.index or 0)


def require(device: Device) -> None:
    """Raise if the device is not there. Meta always is: nothing is computed there."""
    if device.type != "meta" and device.mesh is None:
        _resolve(device)


def require_data(device: Device) -> None:
    """Raise if tensors there have no data: on the meta device none has."""
    if device.type == "meta":
        raise NoData(
            "a tensor on the meta device has a shape and a dtype, but no data",
            help="give it data first: module.to_empty(device=...), or load_state_dict(..., assign=True)",
        )


def put(array: np.ndarray, device: Device) -> Any:
    """A host array copied into a buffer of the device; over a mesh, to each of its devices."""
    if device.mesh is not None:
        return meshes.put(array, Sharding.replicated(device.mesh, array.ndim))
    return put_on(array, _resolve(device)[1])


def put_on(array: np.ndarray, xla_device: Any) -> Any:
    j = jaxlib()
    sharding = j.sharding(xla_device)
    try:
        whole = _own_memory(array)  # since XLA computes with it where it lies
        with _wide_types(j):
            buffer = j._jax.batched_device_put(
                _Aval(array.shape, array.dtype, sharding), sharding, [whole], [xla_device]
            )
    except Exception as error:
        raise translate(error) from None
    if buffer.on_device_size_in_bytes() != array.nbytes:
        raise EngineError(f"jaxlib did not keep {array.dtype} as it is")
    return buffer


CACHE_LINE = 64


def _own_memory(array: np.ndarray) -> np.ndarray:
    """A copy in memory of its own; a large one begins a cache line, as XLA's own arrays do, since a vector
    that lies across two takes longer to load."""
    if array.nbytes < 4096:
        return np.array(array, order="C")
    memory = np.empty(array.nbytes + CACHE_LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % CACHE_LINE
    whole = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    whole[...] = array
    return whole


def copy(buffer: Any, device: Device) -> Any:
    """The same data in memory of its own, on the device."""
    if device.mesh is not None:
        return meshes.copy(buffer)
    _, xla_device = _resolve(device)
    j = jaxlib()
    always = j._jax.ArrayCopySemantics.ALWAYS_COPY
    devices, sharding = j.xc.DeviceList((xla_device,)), j.sharding(xla_device)
    try:
        copied = j._jax.batched_copy_array_to_devices_with_sharding([buffer], [devices], [sharding], [always])
    except Exception as error:
        raise translate(error) from None
    return copied[0]


# DLPack's codes for kinds of numbers, where NumPy does not know them.
_DLPACK_NAMES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12}


def lend(array: np.ndarray) -> Any:
    """A capsule of the array's own memory for others to read, not for XLA to compute with."""
    code = _DLPACK_NAMES.get(array.dtype.name, 6 if array.dtype.kind == "b" else None)
    if code is None:
        return array.__dlpack__()
    capsule = array.view(f"u{array.itemsize}").__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # In a DLManagedTensor the kind of numbers comes after the pointer (8 bytes), the device (8), ndim (4).
    ctypes.c_uint8.from_address(pointer_of(capsule, b"dltensor") + 20).value = code
    return capsule


@contextlib.contextmanager
def _wide_types(j: SimpleNamespace) -> Iterator[None]:
    """Keep jaxlib from narrowing 64-bit arrays, which it does by a switch that it shares with JAX."""
    with _lock:
        j._jax.jax_jit.set_enable_x64_state(j.wide)
        try:
            yield
        finally:
            jax_config = sys.modules.get("jax._src.config")
            if jax_config is not None:
                j._jax.jax_jit.set_enable_x64_state(jax_config.enable_x64)


class _Aval:
    """What jaxlib asks about an array that it is to make."""

    weak_type = False
    vma = frozenset[Any]()

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, sharding: Any):
        self.on_host = sharding.on_host
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.size = math.prod(shape)
        self.sharding = sharding


def around(part: Any, shape: tuple[int, ...], dtype: Any, xla_device: Any) -> Any:
    """A part of an array over several devices as a buffer of the device that has it."""
    j = jaxlib()
    sharding = j.sharding(xla_device)
    aval = _Aval(shape, dtype, sharding)
    return j._jax.ArrayImpl(aval, sharding, [part], committed=True, _skip_checks=True)


def described(shape: tuple[int, ...], dtype: np.dtype, xla_device: Any) -> Any:
    """What jaxlib asks about a buffer that is yet to come."""
    return _Aval(shape, dtype, jaxlib().sharding(xla_device))


def fetch(buffer: Any) -> np.ndarray:
    """A buffer's data as a NumPy array, read-only, and on the CPU the same memory."""
    try:
        aval = buffer.aval
        if type(aval) is _Aval and aval.on_host and aval.dtype.isbuiltin == 1 and aval.size:
            return np.asarray(memoryview(buffer))
        if getattr(aval, "sharded", False):
            return meshes.fetch(buffer)
        # Without the package jax, np.asarray knows no bfloat16.
        return buffer._single_device_array_to_np_array_did_copy()[0]
    except Exception as error:
        raise translate(error) from None


def array_type() -> type:
    """What buffers are."""
    return jaxlib()._jax.ArrayImpl


def fetch_ahead(buffer: Any) -> None:
    """Let a buffer's data come to the host meanwhile, where it will be fetched."""
    buffer._copy_single_device_array_to_host_async()


_C_NUMBERS: dict[DType, Any] = {
    dtypes.bool_: ctypes.c_bool,
    dtypes.uint8: ctypes.c_uint8,
    dtypes.int8: ctypes.c_int8,
    dtypes.int16: ctypes.c_int16,
    dtypes.int32: ctypes.c_int32,
    dtypes.int64: ctypes.c_int64,
    dtypes.float32: ctypes.c_float,
    dtypes.float64: ctypes.c_double,
}


def number(buffer: Any, dtype: DType, device: Device) -> Any:
    """The one element of a buffer as a Python number; much sooner than as an array. On the CPU it mostly is
    there, but a program whose inputs are still being copied runs after the call that starts it returns."""
    is_here = device.type == "cpu" and (device.mesh is None or device.mesh.size == 1)
    kind = _C_NUMBERS.get(dtype) if is_here else None
    if kind is None:
        return fetch(buffer).item()
    try:
        if not buffer.is_ready():
            buffer.block_until_ready()
        return kind.from_address(buffer.unsafe_buffer_pointer()).value
    except Exception as error:
        raise translate(error) from None


def from_dlpack(capsule: Any, device: Device) -> Any:
    _, xla_device = _resolve(device)
    try:
        return jaxlib()._jax.dlpack_managed_tensor_to_buffer(capsule, xla_device, None)
    except Exception as error:
        raise translate(error) from None


def is_row_major(buffer: Any) -> bool:
    """Whether a buffer that came from elsewhere lies as programs expect it: the last dimension is fastest."""
    text = str(buffer._pjrt_layout)
    order = text[1 : text.find("}")].partition(":")[0]
    return order == ",".join(map(str, reversed(range(buffer.ndim))))


def to_dlpack(buffer: Any) -> Any:
    return jaxlib()._jax.buffer_to_dlpack_managed_tensor(buffer, stream=None)


def pointer(buffer: Any) -> int:
    """The address of a buffer's data, which is there."""
    buffer.block_until_ready()
    return buffer.unsafe_buffer_pointer()


class Executable:
    """A compiled program: call it with buffers, get buffers. Inside, `start` gives all results in one piece,
    of which `makers` make the buffers."""

    __slots__ = ("__weakref__", "_made", "loaded", "makers", "start")

    def __init__(self, loaded: Any, makers: Sequence[Any]):
        _alive.add(self)
        self.loaded = loaded
        self.start = loaded.execute_sharded
        self.makers = makers
        self._made = operator.methodcaller("consume_with_handlers", self.makers)

    def __call__(self, buffers: Sequence[Any], held: list[Any] | None = None) -> list[Any]:
        """The results, which `held` has even if an interrupt keeps this from returning them: Python hears of
        one between its own steps, of which this is one."""
        if _forked:
            _refuse_fork()
        if not turn() & TURNS:
            let_go()
        held = [] if held is None else held
        try:
            held.extend(map(self._made, map(self.start, (buffers,))))
            return held[0]
        except Exception as error:
            raise translate(error) from None

    def memory(self) -> int:
        """The bytes that a run holds: what goes in, what comes out elsewhere, and what it needs meanwhile."""
        stats = self.loaded.get_compiled_memory_stats()
        results = stats.output_size_in_bytes - stats.alias_size_in_bytes
        return stats.argument_size_in_bytes + results + stats.temp_size_in_bytes

    def hlo(self) -> str:
        """What XLA made of the program."""
        return "\n".join(module.to_string() for module in self.loaded.hlo_modules())


def executables() -> list[Executable]:
    """All compiled programs that there are."""
    return list(_alive)


def synchronize() -> None:
    """Wait until the devices in use have done all that they were given. The CPU's programs have run when
    the call that starts them returns."""
    for place in [client for client in list(_clients.values()) if client.platform != "cpu"]:
        for array in place.client.live_arrays():
            with contextlib.suppress(RuntimeError):  # given away meanwhile
                array.block_until_ready()


def device_kind(platform: str) -> str:
    """What a platform's first device calls itself."""
    return client(platform).device(0).device_kind


class TraceEvent(NamedTuple):
    """Something that XLA's profiler saw: times in nanoseconds since it began; of a kernel the instruction,
    and the module, program and run that it belongs to."""

    name: str
    line: str
    on_gpu: bool
    start: int
    duration: int
    instruction: str
    module: str
    program: int
    run: int


def start_trace() -> Any:
    """Begin to watch what runs; the session is for `end_trace`."""
    from jaxlib import _profiler

    while _plugins:
        _profiler.register_plugin_profiler(_plugins.pop())
    options = _profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    options.enable_hlo_proto = False
    return _profiler.ProfilerSession(options)


def end_trace(session: Any) -> tuple[list[TraceEvent], int]:
    """What was seen, and when it began, in nanoseconds since 1970."""
    from jaxlib import _profile_data

    data = _profile_data.ProfileData.from_serialized_xspace(session.stop())
    found, started = [], 0
    for plane in data.planes:
        started = int(dict(plane.stats).get("profile_start_time", started))
        on_gpu = plane.name.startswith("/device:GPU")
        for line in plane.lines:
            if on_gpu and not line.name.startswith("Stream"):
                continue  # the same again, by module and by op
            for event in line.events:
                facts = dict(event.stats)
                at = (int(event.start_ns), int(event.duration_ns), str(facts.get("hlo_op", "")))
                run = int(facts.get("run_id", 0)) if not on_gpu else 0
                owner = (str(facts.get("hlo_module", "")), int(facts.get("program_id", 0)), run)
                if on_gpu or at[2]:
                    found.append(TraceEvent(event.name, f"{plane.name} {line.name}", on_gpu, *at, *owner))
    return found, started


def profiled(executable: Executable, buffers: Sequence[Any]) -> tuple[list[TraceEvent], float]:
    """What the profiler saw of one run, after one that is thrown away, and the seconds that it took."""
    for _ in range(2):
        session = start_trace()
        start = time.perf_counter()
        for buffer in executable(buffers):
            buffer.block_until_ready()
        seconds = time.perf_counter() - start
        events = end_trace(session)[0]
    return events, seconds


def _makers(results: Sequence[TensorType], xla_device: Any) -> list[Any]:
    """What makes a program's results. To be told what each is saves jaxlib from asking Python about every
    one, at every run."""
    j = jaxlib()
    sharding = j.sharding(xla_device)
    avals = [_Aval(result.shape, result.dtype.numpy, sharding) for result in results]
    return [j.handler(aval, sharding, committed=True) for aval in avals]


def provide(module: stablehlo.Module, device: Device) -> None:
    """Make the functions known that the program calls by name, before it is compiled or loaded."""
    for call in module.calls:
        if device.type == "cuda" and call.call_target_name.startswith(("__cudnn$", tile_kernels.TARGET)):
            continue  # XLA's own
        if call.call_target_name.startswith(PYTHON):
            _require_cpu(call, device, f"the Python kernel of {call.call_target_name.split('#')[1]}")
            continue
        if (device.type, call.call_target_name) in kernels.FOREIGN:
            _register(call.call_target_name, device.type)
            continue
        if device.type == "cuda" and call.call_target_name in _cusolver():
            continue
        if call.call_target_name not in _lapack():
            error = UnsupportedError(f"XLA knows no function {call.call_target_name!r}")
            raise error.located("", call.source)
        _require_cpu(call, device, f"LAPACK's {call.call_target_name.split('_')[1]}")


def _require_cpu(call: structured.CustomCall, device: Device, what: str) -> None:
    if device.type != "cpu":
        raise UnsupportedError(
            f"{what} runs on the CPU alone, not on {device}",
            help="move its arguments there with .cpu() and the results back",
        ).located("", call.source)


@functools.cache
def _register(name: str, platform: str) -> None:
    """Tell XLA of a C function that a package registered."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(kernels.FOREIGN[platform, name], b"xla._CUSTOM_CALL_TARGET", None)
    platform = "cpu" if platform == "cpu" else "CUDA"
    jaxlib().xc.register_custom_call_target(name, capsule, platform=platform, api_version=1)


@once
def _cusolver() -> frozenset[str]:
    """The names of the CUDA plugin's routines of linear algebra, known to XLA from now on."""
    try:
        from jax_cuda13_plugin import _solver
    except ImportError as error:
        raise MissingEngine(
            f"linear algebra on CUDA needs XLA's CUDA plugin, which cannot be imported ({error})",
            help="pip install jax-cuda13-plugin, of jaxlib's version",
        ) from None
    targets = _solver.registrations()
    for target, function in targets.items():
        jaxlib().xc.register_custom_call_target(target, function, platform="CUDA", api_version=1)
    return frozenset(targets)


@once
def _lapack() -> frozenset[str]:
    """The names of jaxlib's LAPACK routines, known to XLA from now on."""
    j = jaxlib()
    with _lock:
        try:
            from jaxlib.cpu import _lapack as library

            library.initialize()  # it takes the routines themselves from SciPy
        except ImportError as error:
            raise MissingEngine(
                f"linear algebra needs SciPy's LAPACK, which cannot be imported ({error})",
                help="pip install scipy",
            ) from None
        targets = {
            name: registration
            for name, registration in library.registrations().items()
            if name.endswith("_ffi")
        }
        for name, function in targets.items():
            j.xc.register_custom_call_target(name, function, platform="cpu", api_version=1)
    return frozenset(targets)


def compile(module: stablehlo.Module, device: Device, optimised: bool = True) -> Executable:
    provide(module, device)
    if isinstance(device, Partitioned):
        return meshes.compile(module, device)
    place, xla_device = _resolve(device)
    devices = jaxlib().xc.DeviceList((xla_device,))
    try:
        options = _options(xla_device, module, optimised)
        if calls_python(module):  # which XLA is told in full, as a module
            callbacks = [kernels.call_python]
            compiled = lambda: place.client.compile_and_load(module.module, devices, options, callbacks)
        else:
            compiled = lambda: place.client.compile_and_load(module.bytecode(), devices, options)
        (loaded,) = aside(compiled)
    except Exception as error:
        refused = [name for name, _ in (*OPTIONS[device.type], *HASTY) if f"option: '{name}'" in str(error)]
        of_results = (DETERMINISTIC[0], _ROUNDED[0])
        if not refused or "No such compile" not in str(error) or refused[0] in of_results:
            raise translate(error) from None
        for options in (OPTIONS[device.type], HASTY):  # the others are about speed alone
            options[:] = [option for option in options if option[0] != refused[0]]
        warn(f"jaxlib {jaxlib().version}'s XLA has no option {refused[0]}: programs may be slower")
        return compile(module, device, optimised)
    return Executable(loaded, _makers(module.results, xla_device))


def calls_python(module: stablehlo.Module) -> bool:
    return any(call.call_target_name.startswith(PYTHON) for call in module.calls)


def serialize(executable: Executable) -> bytes:
    try:
        return executable.loaded.serialize()
    except Exception as error:
        raise translate(error) from None


def deserialize(data: bytes, module: stablehlo.Module, device: Device) -> Executable:
    """The executable of a module, from what was stored of it."""
    if isinstance(device, Partitioned):
        return meshes.deserialize(data, module, device)
    place, xla_device = _resolve(device)
    xc = jaxlib().xc
    try:
        options = _options(xla_device, module)
        callbacks = [[kernels.call_python]] if calls_python(module) else []
        loaded = place.client.deserialize_executable(data, xc.DeviceList((xla_device,)), options, *callbacks)
    except Exception as error:
        raise translate(error) from None
    return Executable(loaded, _makers(module.results, xla_device))


# On CPUs, XLA would give convolutions to YNNPACK, which takes four times as long for them as XLA itself, and
# small reductions, for which it takes longer too. On GPUs it would run large matrix products by Triton that
# take cuBLAS half the time, and join the weights of products that share a factor at every call.
_YNN = "xla_cpu_experimental_ynn_fusion_type"
_PRODUCTS, _REDUCTIONS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT", "LIBRARY_FUSION_TYPE_REDUCE"
LONG = 100_000  # elements that YNNPACK adds up sooner than XLA
# XLA's newer way to emit a kernel takes time that grows with the square of the ops in it: 14 s for 6,000 ops,
# where the older takes 3.
_SHORT_KERNELS = ("xla_cpu_use_fusion_emitters", False)
# Most of what a compile takes on CPUs: LLVM's optimisations, and kernels made by way of MLIR, at 15 ms each.
HASTY: list[tuple[str, Any]] = [
    ("xla_backend_optimization_level", 0),
    ("xla_cpu_use_fusion_emitters", False),
    ("xla_cpu_parallel_codegen_split_count", 1),  # modules of LLVM's that the kernels are spread over
]
# XLA would leave out roundings to half precision whose result is widened again, though PyTorch has them. On
# GPUs what a bias's gradient adds up would then be written and read in float32, beside the rounded copy that
# the products take.
_ROUNDED = ("xla_allow_excess_precision", False)
OPTIONS: dict[str, list[tuple[str, Any]]] = {
    "cpu": [(_YNN, f"{_PRODUCTS},{_REDUCTIONS}"), _ROUNDED],
    "cuda": [("xla_gpu_enable_triton_gemm", False), ("xla_gpu_dot_merger_threshold_mb", 1), _ROUNDED],
}

DETERMINISTIC = ("xla_gpu_deterministic_ops", True)
_deterministic = False


def set_deterministic(wanted: bool) -> bool:
    """Whether GPU programs compiled from now on give the same bits whenever they run, which on CPUs they do.
    Gives whether that is news."""
    global _deterministic
    if wanted is _deterministic:
        return False
    (OPTIONS["cuda"].append if wanted else OPTIONS["cuda"].remove)(DETERMINISTIC)
    _deterministic = wanted
    return True


# What GPUs compute with all bits of float32: PyTorch's defaults, by which convolutions may use TF32.
_exact = {stablehlo.PRODUCTS}


def set_exact(what: str, wanted: bool) -> bool:
    """Whether GPU programs compiled from now on keep all bits of float32 factors in products or in
    convolutions. Gives whether that is news."""
    if wanted is (what in _exact):
        return False
    (_exact.add if wanted else _exact.remove)(what)
    return True


def exact(device: Device | None = None) -> frozenset[str]:
    """What is to be exact; on a device where that is a choice."""
    return frozenset(_exact) if device is None or device.type == "cuda" else frozenset()


def is_deterministic() -> bool:
    return _deterministic


def _options(xla_device: Any, module: stablehlo.Module, optimised: bool = True) -> Any:
    xc = jaxlib().xc
    options = xc.CompileOptions()
    options.device_assignment = xc.DeviceAssignment.create(np.array([[xla_device.id]], np.int32))
    platform = "cpu" if xla_device.platform == "cpu" else "cuda"
    options.env_option_overrides = [*overrides(platform, module), *([] if optimised else HASTY)]
    return options


def overrides(platform: str, module: stablehlo.Module) -> list[tuple[str, Any]]:
    """The settings of XLA's that differ from its own choice for a program."""
    overrides = OPTIONS[platform]
    # Small arrays are computed with before YNNPACK has begun. A product by an array of equal elements, which
    # it would take into a reduction, it computes from memory that nothing was written to.
    if module.small or module.uniform or module.reduced < LONG:
        given = "" if module.small else _PRODUCTS
        overrides = [(name, given if name == _YNN else value) for name, value in overrides]
    return [*overrides, _SHORT_KERNELS] if platform == "cpu" and module.long else overrides


def fingerprint(module: stablehlo.Module, device: Device) -> str:
    """What a compiled program depends on besides its text: versions, hardware, and XLA's own settings."""
    place = client(device.type)
    chip = place.device(device.index or 0)
    if isinstance(device, Partitioned):
        chip = meshes.fingerprint(device)
    flags = os.environ.get("XLA_FLAGS", "")
    versions = f"{jaxlib().version} {place.client.platform_version}"
    return f"{versions} {chip} {_processor()} {flags} {overrides(device.type, module)}"


@functools.cache
def _processor() -> str:
    """The instructions that this machine's processor has, as Linux lists them: code may use them all."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        return os.uname().machine


def translate(error: Exception) -> Exception:
    """An engine's exception as one of ours; what a signal's handler raised is the user's, and stays."""
    if isinstance(error, TenfoldError) or is_from_handler(error):
        return error
    text = str(error)
    failed = kernels.take_failure() if "xla_ffi_python" in text or "Traceback" in text else None
    if failed is not None:
        return failed
    if "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower() or isinstance(error, MemoryError):
        return OutOfMemory(
            f"out of memory: {_first_line(error)}", help="use smaller tensors or batches, or free some"
        )
    return EngineError(f"XLA: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    """What an exception says; a heading that ends in a colon says nothing without the line after it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} {lines[1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
