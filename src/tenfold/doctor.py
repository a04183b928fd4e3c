"""What `tenfold doctor` looks at: packages, engines, devices, the cache. Engines are tried out."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.errors import TenfoldError
from tenfold.interchange import tensor
from tenfold.mlir import stablehlo
from tenfold.runtime import cache

# Package, what needs it, the command that installs it, and whether Tenfold works without.
PACKAGES = (
    ("numpy", "arrays on the host", "pip install numpy", False),
    ("ml_dtypes", "bfloat16 and float8", "pip install ml_dtypes", False),
    ("jaxlib", "StableHLO and XLA", stablehlo.INSTALL, False),
    ("rich", "the command line", "pip install rich", False),
    ("torch-mlir", "the torch dialect", "pip install 'tenfold[torch-dialect]'", True),
    ("torch", "libtorch", "pip install 'tenfold[libtorch]'", True),
    ("iree-base-compiler", "IREE", "pip install 'tenfold[iree]'", True),
)


class Finding(NamedTuple):
    what: str
    works: bool
    found: str
    remedy: str
    optional: bool


def examine() -> list[Finding]:
    findings = [Finding("Python", True, f"{platform.python_version()} on {sys.platform}", "", False)]
    for package, purpose, install, optional in PACKAGES:
        try:
            version = importlib.metadata.version(package)
            findings.append(Finding(package, True, f"{version}, for {purpose}", "", optional))
        except importlib.metadata.PackageNotFoundError:
            findings.append(Finding(package, False, f"not installed; {purpose} needs it", install, optional))
    findings.append(_try_device("cpu", optional=False))
    findings.append(_try_device("cuda", optional=True))
    findings.append(_cache())
    return findings


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
        return Finding("disk cache", True, "switched off by TENFOLD_CACHE_DIR", "", True)
    files = list(Path(where).glob("*" + cache.SUFFIX))
    size = sum(each.stat().st_size for each in files) / 1e6
    return Finding("disk cache", True, f"{where}: {len(files)} programs, {size:.1f} MB", "", True)
