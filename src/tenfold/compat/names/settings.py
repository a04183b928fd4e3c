"""Settings and questions of PyTorch's that are about the process and not about tensors: threads, determinism,
precision, autocast by device. XLA decides for itself how it runs a program; what it does not take is kept."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from tenfold.amp.autocast_mode import (
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from tenfold.autograd.anomaly import search, set_detect_anomaly
from tenfold.base.devices import Device, set_default_device
from tenfold.base.dtypes import DType, set_default_dtype
from tenfold.base.errors import ArgumentError, DTypeError, located
from tenfold.compat.names import determinism
from tenfold.engines import xla
from tenfold.mlir import stablehlo
from tenfold.runtime.compile import set_exact
from tenfold.tensor import generators
from tenfold.tensor.typed import CUDA_TYPES, TYPES
from tenfold.trace.context import context

_kept = SimpleNamespace(
    threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    interop_threads=1,
    deterministic=False,
    warn_only=False,
    warn_always=False,
    precision="highest",
    type_chose_gpu=False,
)

default_generator = generators.default_generator(Device("cpu"))


def _positive(count: Any) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"takes a positive int, not {count!r}")
    return count


@located
def set_num_threads(count: int) -> None:
    """Keep a number of threads for `get_num_threads`. XLA's own threads are as many as the process may use
    processors: `taskset` limits them."""
    _kept.threads = _positive(count)


def get_num_threads() -> int:
    return _kept.threads


@located
def set_num_interop_threads(count: int) -> None:
    """Keep a number of threads for `get_num_interop_threads`."""
    _kept.interop_threads = _positive(count)


def get_num_interop_threads() -> int:
    return _kept.interop_threads


@located
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Let a program on a GPU give the same bits whenever it runs, as it does on the CPU anyway: XLA chooses
    slower algorithms for that, and an op that has none is an error, also with `warn_only`."""
    for given in (mode, warn_only):
        if not isinstance(given, bool):
            raise ArgumentError(f"takes a bool, not {given!r}")
    _kept.deterministic, _kept.warn_only = mode, warn_only
    determinism.ask("algorithms", mode)


def are_deterministic_algorithms_enabled() -> bool:
    return _kept.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return _kept.warn_only


_DEBUG_MODES = ("default", "warn", "error")


@located
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default", 1 or "warn", 2 or "error"."""
    mode = _DEBUG_MODES.index(debug_mode) if debug_mode in _DEBUG_MODES else debug_mode
    if mode not in (0, 1, 2):
        raise ArgumentError(f"{debug_mode!r} is not one of {', '.join(_DEBUG_MODES)}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    return 0 if not _kept.deterministic else 1 if _kept.warn_only else 2


@located
def set_float32_matmul_precision(precision: str) -> None:
    """How precise float32 products are on GPUs: "highest" keeps all bits, "high" and "medium" let them round
    factors to TF32. On CPUs all bits are kept."""
    if precision not in ("highest", "high", "medium"):
        raise ArgumentError(f'{precision!r} is not one of "highest", "high", "medium"')
    _kept.precision = precision
    set_exact(stablehlo.PRODUCTS, precision == "highest")


def get_float32_matmul_precision() -> str:
    return _kept.precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether it is so: XLA's programs on the CPU take subnormal numbers for zero, always."""
    return bool(mode)


def set_warn_always(b: bool) -> None:
    """Keep the wish; warnings here follow Python's own filters."""
    _kept.warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    return _kept.warn_always


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Look for NaN in gradients from now on, or no longer."""
    set_detect_anomaly(enabled, check_nan)


def is_anomaly_enabled() -> bool:
    return search.enabled


def is_anomaly_check_nan_enabled() -> bool:
    return search.check_nan


def is_inference_mode_enabled() -> bool:
    return context.inference


# Autocast by device, in the older way


def is_autocast_cpu_enabled() -> bool:
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> DType:
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> DType:
    return get_autocast_dtype("cuda")


def set_autocast_cpu_dtype(dtype: DType) -> None:
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: DType) -> None:
    set_autocast_dtype("cuda", dtype)


@located
def set_default_tensor_type(t: Any) -> None:
    """Make the dtype of a type such as `tenfold.DoubleTensor` the default one; of a type such as
    `tenfold.cuda.FloatTensor` also the GPU this thread's default device, until a type of the CPU is set."""
    if isinstance(t, str):
        place, _, name = t.rpartition(".")
        kind = (CUDA_TYPES if place.rpartition(".")[2] == "cuda" else TYPES).get(name)
    else:
        kind = t
    dtype = getattr(kind, "dtype", None)
    if kind is None or not isinstance(dtype, DType) or not dtype.is_floating_point:
        raise DTypeError(f"{t} is no type of float tensors", help="use tenfold.set_default_dtype")
    on_gpu = getattr(kind, "device", None) == "cuda"
    if on_gpu:
        xla.client("cuda")  # an error that says what is missing, before anything changes
        set_default_device("cuda")
    elif _kept.type_chose_gpu:
        set_default_device("cpu")
    _kept.type_chose_gpu = on_gpu
    set_default_dtype(dtype)


def is_vulkan_available() -> bool:
    return False
