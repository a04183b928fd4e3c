"""The settings that XLA compiles programs with, and what else a compiled program depends on."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.late import on_first_use
from tenfold.base.meshes import Partitioned
from tenfold.mlir import PRODUCTS

with on_first_use(__name__):
    from tenfold.engines.xla import clients
    from tenfold.engines.xla.clients import client
    from tenfold.engines.xla.door import jaxlib
    from tenfold.mlir import stablehlo


# On CPUs, XLA would give convolutions to YNNPACK, which takes four times as long for them as XLA itself, and
# small reductions, for which it takes longer too. On GPUs it would run large matrix products by Triton that
# take cuBLAS half the time, and join the weights of products that share a factor at every call.
_YNN = "xla_cpu_experimental_ynn_fusion_type"
_PRODUCTS, _REDUCTIONS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT", "LIBRARY_FUSION_TYPE_REDUCE"
LONG = 100_000  # elements that YNNPACK adds up sooner than XLA
# XLA's newer way to emit a kernel takes time that grows with the square of the ops in it: 14 s for 6,000 ops,
# where the older takes 3.
_SHORT_KERNELS = ("xla_cpu_use_fusion_emitters", False)
_UNFOLDED = ("xla_disable_hlo_passes", "constant_folding")
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
OF_RESULTS = (DETERMINISTIC[0], _ROUNDED[0])  # without these, results would differ
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
_exact = {PRODUCTS}


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


def compile_options(xla_device: Any, module: stablehlo.Module, optimised: bool = True) -> Any:
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
        kinds = "" if module.small else _PRODUCTS
        overrides = [(name, kinds if name == _YNN else value) for name, value in overrides]
    short = [_SHORT_KERNELS] if platform == "cpu" and module.long else []
    return [*overrides, *short, *([_UNFOLDED] if module.slow_to_fold else [])]


def fingerprint(module: stablehlo.Module, device: Device) -> str:
    """What a compiled program depends on besides its text: versions, hardware, and XLA's own settings."""
    place = client(device.type)
    chip = place.device(device.index or 0)
    if isinstance(device, Partitioned):
        chip = clients.meshes.fingerprint(device)
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
