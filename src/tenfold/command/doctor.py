"""The checks of `tenfold doctor`: packages, engines, devices, the cache. Optional packages are loaded as
their first use would load them, and XLA computes something on each kind of device."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import TenfoldError
from tenfold.capi.locate import Libtorch, find_libtorch
from tenfold.engines import iree, xla
from tenfold.engines.onednn import library as onednn
from tenfold.mlir import stablehlo, torch_dialect
from tenfold.runtime import cache
from tenfold.tensor.interchange import tensor

# Packages that Tenfold does not work without: what needs them, and the command that installs them.
PACKAGES = (
    ("numpy", "arrays on the host", "pip install numpy"),
    ("ml_dtypes", "bfloat16 and float8", "pip install ml_dtypes"),
    ("jaxlib", "StableHLO and XLA", stablehlo.INSTALL),
    ("rich", "the command line", "pip install rich"),
)
# What it works without: the package, what it is for, and what loads it if it is one that is known.
DOORS: tuple[tuple[str, str, Callable[[], Any]], ...] = (
    ("torch-mlir", "the torch dialect", torch_dialect.bindings),
    ("torch", "libtorch", find_libtorch),
    ("iree-base-compiler", "compiling for IREE", iree.compiler),
    ("iree-base-runtime", "running IREE's programs", iree.runtime),
    (onednn.LIBRARY, "convolutions on the CPU by oneDNN", onednn.load),
)


class Finding(NamedTuple):
    what: str
    works: bool
    found: str
    remedy: str
    optional: bool


def examine() -> list[Finding]:
    findings = [Finding("Python", True, f"{platform.python_version()} on {sys.platform}", "", False)]
    for package, purpose, install in PACKAGES:
        version = _version(package)
        found = f"{version}, for {purpose}" if version else f"not installed; {purpose} needs it"
        findings.append(Finding(package, version is not None, found, "" if version else install, False))
    findings += [_try_door(*door) for door in DOORS]
    findings.append(_try_device("cpu", optional=False))
    findings.append(_try_device("cuda", optional=True))
    findings.append(_cache())
    return findings


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _try_door(package: str, purpose: str, check: Callable[[], Any]) -> Finding:
    """Load it, as its first use would."""
    try:
        found = check()
    except TenfoldError as error:
        return Finding(package, False, error.message, str(error.help or ""), True)
    version = found.version if isinstance(found, Libtorch) else _version(package)
    return Finding(package, True, f"{version}, for {purpose}", "", True)


def _try_device(name: str, optional: bool) -> Finding:
    """Compute something there and check the answer."""
    what = f"XLA on {name}"
    try:
        ones = tensor(np.ones((2, 3), np.float32), device=name)
        total = (ones + ones).sum().item()
        if total != 12.0:
            return Finding(what, False, f"computes 12 as {total}", "reinstall jaxlib", optional)
        count = len(xla.client(name).devices)
        return Finding(
            what, True, f"works, {count} device{'s' * (count > 1)}: {Device(name).resolved}", "", optional
        )
    except TenfoldError as error:
        return Finding(what, False, error.message, str(error.help or ""), optional)


def _cache() -> Finding:
    where = cache.folder()
    if where is None:
        return Finding(
            "disk cache", True, "switched off by TENFOLD_CACHE_DIR, or the user has no home", "", True
        )
    files = list(Path(where).glob("*" + cache.SUFFIX))
    size = sum(file.stat().st_size for file in files) / 1e6
    return Finding("disk cache", True, f"{where}: {len(files)} programs, {size:.1f} MB", "", True)
