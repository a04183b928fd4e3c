"""The one importer of jaxlib beside `mlir/stablehlo.py`: its interfaces may change between releases."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from tenfold.base.errors import MissingEngine
from tenfold.mlir import stablehlo
from tenfold.mlir.interrupts import once


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
    stablehlo.jaxlib_version()
    from jaxlib import xla_client

    return Path(xla_client.__file__).with_name("include")


def profiler() -> ModuleType:
    """Sessions that watch what runs."""
    from jaxlib import _profiler

    return _profiler


def profile_data() -> ModuleType:
    """Reads what a session saw."""
    from jaxlib import _profile_data

    return _profile_data


def lapack() -> dict[str, Any]:
    """jaxlib's LAPACK functions by name."""
    try:
        from jaxlib.cpu import _lapack

        _lapack.initialize()  # it takes the routines themselves from SciPy
    except ImportError as error:
        raise MissingEngine(
            f"linear algebra needs SciPy's LAPACK, which cannot be imported ({error})",
            help="pip install scipy",
        ) from None
    return {name: function for name, function in _lapack.registrations().items() if name.endswith("_ffi")}
