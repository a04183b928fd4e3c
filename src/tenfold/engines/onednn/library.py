"""Finds oneDNN where the extra `onednn` is installed, and builds the bridge by which XLA calls it, once."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from importlib import metadata
from pathlib import Path

from tenfold.base import log
from tenfold.base.errors import EngineError, MissingEngine, TenfoldError
from tenfold.base.package import install_command
from tenfold.base.progress import compiling
from tenfold.base.warning import warn
from tenfold.capi.compilers import compiler, version_of
from tenfold.capi.kept import locked, unfinished
from tenfold.capi.locate import cache_folder, require_own
from tenfold.engines import xla
from tenfold.mlir.interrupts import once
from tenfold.ops.kernels import register_foreign

LIBRARY, HEADERS = "onednn-cpu-gomp", "onednn-devel-cpu-gomp"
TARGET = "tenfold_onednn_convolution"  # the name of what XLA calls
SOURCE = Path(__file__).with_name("convolution.cpp")


@once
def is_ready() -> bool:
    """Whether programs may call oneDNN: the extra is installed, and the bridge to it could be
    built."""
    if os.environ.get("TENFOLD_ONEDNN") == "0":
        return False
    if _installed() is None:
        return False
    try:
        load()
    except (TenfoldError, OSError) as error:
        warn(f"convolutions run without oneDNN, which cannot be used: {error}")
        return False
    return True


def load() -> None:
    """Make the bridge to oneDNN known to XLA."""
    installed = _installed()
    if installed is None:
        raise MissingEngine("oneDNN is not installed", help=install_command("onednn"))
    register_foreign(TARGET, ctypes.CDLL(str(_built(*installed)))[TARGET])


def _installed() -> tuple[Path, Path] | None:
    """oneDNN's library, and the folder of its headers."""
    library, header = _file_of(LIBRARY, "libdnnl.so.3"), _file_of(HEADERS, "oneapi/dnnl/dnnl.hpp")
    return None if library is None or header is None else (library, header.parents[2])


def _file_of(distribution: str, end: str) -> Path | None:
    """A file of an installed package."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).resolve() for file in files if str(file).endswith(end)), None)


def _built(library: Path, headers: Path) -> Path:
    """The bridge, a shared library that XLA calls, built unless the cache has it."""
    xla_headers = xla.headers()
    cpp = compiler("CXX", "g++", "c++")
    flags = [
        "-std=c++17",
        "-O2",
        "-fPIC",
        "-shared",
        "-fopenmp",
        f"-isystem{xla_headers}",
        f"-isystem{headers}",
    ]
    sources = [SOURCE, *sorted(xla_headers.glob("xla/ffi/api/*.h")), headers / "oneapi/dnnl/dnnl_version.h"]
    made_from = [*[path.read_text("utf-8") for path in sources], version_of(cpp), str(library), *flags]
    digest = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:16]
    folder = cache_folder() / f"onednn-{digest}"
    require_own(cache_folder())
    require_own(folder)
    built = folder / "libtenfold_onednn.so"
    if not built.exists():
        with locked(folder):
            if not built.exists():
                partial = unfinished(folder)
                partial.mkdir(mode=0o700, exist_ok=True)
                command = [cpp, *flags, str(SOURCE), str(library), f"-Wl,-rpath,{library.parent}"]
                with log.timed("compile", "the bridge to oneDNN"), compiling():
                    _run([*command, "-o", str(partial / built.name)])
                partial.rename(folder)
    return built


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise EngineError(
            f"the bridge to oneDNN does not build\n{done.stderr[:2000]}", help=" ".join(command)
        )
