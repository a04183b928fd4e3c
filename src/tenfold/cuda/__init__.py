"""`tenfold.cuda`: PyTorch's functions about GPUs. XLA manages streams and memory itself, so functions that
would control these have no effect, or raise an error."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold import storage
from tenfold.base.absent import AbsentModule
from tenfold.base.devices import Device, get_default_device, set_default_device
from tenfold.base.errors import (
    EngineError,
    OutOfMemory as OutOfMemoryError,
    TenfoldError,
    UnsupportedError,
    located,
    unknown_name,
)
from tenfold.cuda import amp, nvtx
from tenfold.cuda.streams import (
    CUDAGraph,
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    graph,
    is_current_stream_capturing,
    set_stream,
    stream,
)
from tenfold.engines import xla
from tenfold.tensor import generators
from tenfold.tensor.typed import CUDA_TYPES

__all__ = [
    "CUDAGraph", "Event", "ExternalStream", "OutOfMemoryError", "Stream", "StreamContext", "amp",
    "current_device", "current_stream", "default_stream", "device", "device_count", "empty_cache",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "graph", "init", "initial_seed", "ipc_collect", "is_available",
    "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
    "memory_stats", "nvtx", "reset_max_memory_allocated", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "stream", "synchronize",
]  # fmt: skip

# `tenfold.cuda.FloatTensor` and its like
globals().update(CUDA_TYPES)
__all__ += CUDA_TYPES


def device_count() -> int:
    """The number of GPUs that XLA can use; 0 if its plugin is not installed."""
    try:
        return len(xla.client("cuda").devices)
    except TenfoldError:
        return 0


def is_available() -> bool:
    """Whether there is a GPU that XLA can use."""
    return device_count() > 0


def is_initialized() -> bool:
    """Whether there is a GPU: it is ready when it is first used."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether GPUs compute in bfloat16: XLA does so on all of them."""
    return is_available()


def _index(device: Any) -> int:
    if device is None:
        return current_device()
    return device if isinstance(device, int) else Device(device).resolved.index or 0


def _found(device: Any) -> Any:
    """XLA's own object for a GPU; an error that says what is missing where there is none."""
    return xla.client("cuda").device(_index(device))


@located
def current_device() -> int:
    """The index of the default GPU."""
    chosen = get_default_device()
    return chosen.index or 0 if chosen.type == "cuda" else 0


@located
def set_device(device: Any) -> None:
    """Choose the default GPU. If a GPU is the default device of new tensors, this one becomes it."""
    _found(device)
    if get_default_device().type == "cuda":
        set_default_device(Device("cuda", _index(device)))


@located
def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return str(_found(device).device_kind)


class Properties(NamedTuple):
    """The properties of a GPU."""

    name: str
    total_memory: int
    major: int
    minor: int


@located
def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability, such as (8, 0)."""
    major, _, minor = str(_found(device).compute_capability).partition(".")
    return int(major), int(minor or 0)


@located
def get_device_properties(device: Any = None) -> Properties:
    """A GPU's name, memory and compute capability."""
    total = (_found(device).memory_stats() or {}).get("bytes_limit", 0)
    return Properties(get_device_name(device), total, *get_device_capability(device))


@located
def memory_allocated(device: Any = None) -> int:
    """The bytes in use, as counted by XLA; 0 without a GPU."""
    return (_found(device).memory_stats() or {}).get("bytes_in_use", 0) if is_available() else 0


_peaks: dict[int, int] = {}  # by a GPU's index, what the peak was when it was to be counted anew


@located
def max_memory_allocated(device: Any = None) -> int:
    """The peak of bytes in use, of the process or since `reset_peak_memory_stats`; 0 without a GPU.

    XLA keeps one peak for the whole process. If the peak has not risen since the reset, it is unknown, and
    this raises an error."""
    if not is_available():
        return 0
    peak = (_found(device).memory_stats() or {}).get("peak_bytes_in_use", 0)
    if peak <= _peaks.get(_index(device), -1):
        raise UnsupportedError(
            f"since reset_peak_memory_stats the peak has stayed below {peak} bytes, and XLA does not tell by "
            "how much: it counts for the whole process",
            help="measure in a process of its own, or use memory_allocated",
        )
    return peak


@located
def reset_peak_memory_stats(device: Any = None) -> None:
    """Count the peak of memory from now on."""
    if is_available():
        found = _found(device).memory_stats() or {}
        peak = found.get("peak_bytes_in_use", 0)
        _peaks[_index(device)] = peak if found.get("bytes_in_use", 0) < peak else -1


def synchronize(device: Any = None) -> None:
    """Wait until the work submitted to GPUs is done. To compute lazy tensors, use `tenfold.eval`."""
    xla.synchronize()


def empty_cache() -> None:
    """Does nothing: XLA's allocator reuses freed memory."""


@located
def manual_seed(seed: int) -> None:
    """Seed the generator of the current GPU, if there is one."""
    if is_available():
        generators.default_generator(Device("cuda", current_device())).manual_seed(seed)


@located
def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs."""
    for index in range(device_count()):
        generators.default_generator(Device("cuda", index)).manual_seed(seed)


def init() -> None:
    """Initialize the GPUs now; if there is none, an error says what is missing."""
    xla.client("cuda")


@located
def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The free bytes and the total bytes of a GPU that XLA may use."""
    stats = _found(device).memory_stats() or {}
    total = stats.get("bytes_limit", 0)
    return total - stats.get("bytes_in_use", 0), total


def memory_stats(device: Any = None) -> dict[str, int]:
    """XLA's memory statistics of a GPU, under its own names; empty without a GPU."""
    return dict(_found(device).memory_stats() or {}) if is_available() else {}


def ipc_collect() -> None:
    """Does nothing: memory is not shared between processes."""


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Refused: XLA takes its memory when it starts."""
    raise UnsupportedError(
        "XLA takes its memory when it starts",
        help="set XLA_PYTHON_CLIENT_MEM_FRACTION before the program runs",
    )


memory_reserved, max_memory_reserved = memory_allocated, max_memory_allocated
reset_max_memory_allocated = reset_peak_memory_stats


@located
def initial_seed() -> int:
    """The seed of the current GPU's generator."""
    return generators.default_generator(Device("cuda", current_device())).initial_seed()


@located
def seed() -> None:
    """Seed the generator of the current GPU from the system's source of randomness, if there is one."""
    if is_available():
        generators.default_generator(Device("cuda", current_device())).seed()


@located
def seed_all() -> None:
    """Seed the generators of all GPUs from the system's source of randomness."""
    for index in range(device_count()):
        generators.default_generator(Device("cuda", index)).seed()


@located
def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a GPU's generator, as a tensor of bytes."""
    return generators.default_generator(Device(device).resolved).get_state()


@located
def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of a GPU's generator to one that `get_rng_state` returned."""
    generators.default_generator(Device(device).resolved).set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all GPUs."""
    return [get_rng_state(Device("cuda", index)) for index in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of all GPUs' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, Device("cuda", index))


class device:
    """A `with` block in which the GPU with this index is the default device."""

    def __init__(self, device: Any):
        self.device = Device("cuda", _index(device))

    def __enter__(self) -> Device:
        return self.device.__enter__()

    def __exit__(self, *error: object) -> None:
        self.device.__exit__(*error)


class device_of(device):
    """A `with` block in which a tensor's GPU is the default device; no effect if the tensor is not on a
    GPU."""

    def __init__(self, obj: Any):
        super().__init__(obj.device if obj.is_cuda else get_default_device())


@located
def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether both GPUs exist: XLA copies between them itself."""
    return _found(device) is not _found(peer_device)


def is_tf32_supported() -> bool:
    """Whether the GPU has TF32, as GPUs since Ampere have."""
    return is_available() and get_device_capability()[0] >= 8


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """XLA's memory statistics of the GPU as text."""
    return "\n".join([f"{name}: {number:,}" for name, number in memory_stats(device).items()])


memory_stats_as_nested_dict = memory_stats
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved
reset_max_memory_cached = reset_peak_memory_stats
has_half, has_magma = True, False  # linear algebra is cuSOLVER's
AcceleratorError = CudaError = DeferredCudaCallError = EngineError


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple([generators.default_generator(Device("cuda", index)) for index in range(device_count())])
    if name == "_initialized":  # read by layers that keep the random state of GPUs for a second forward
        return is_initialized()
    if name.endswith("Storage"):
        return getattr(storage, name)
    if name in ("profiler", "nccl", "memory", "tunable"):
        return AbsentModule.of(f"torch.cuda.{name}")
    raise unknown_name("tenfold.cuda", name, globals())
