"""The functions that programs call by name: LAPACK's, cuSOLVER's, and those that packages register."""

from __future__ import annotations

import ctypes
import functools

from tenfold.base.devices import Device
from tenfold.base.errors import MissingEngine, UnsupportedError
from tenfold.engines.xla.clients import lock
from tenfold.engines.xla.door import jaxlib, lapack
from tenfold.flat import structured
from tenfold.flat.structured import PYTHON
from tenfold.mlir import stablehlo
from tenfold.mlir.interrupts import once
from tenfold.ops import kernels, tile_kernels


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
        from jax_cuda13_plugin import _solver  # type: ignore[import-not-found]
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
    with lock:
        targets = lapack()
        for name, function in targets.items():
            jaxlib().xc.register_custom_call_target(name, function, platform="cpu", api_version=1)
    return frozenset(targets)
