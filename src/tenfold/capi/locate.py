"""Where libtorch is and what it has, found without importing torch: its version, headers, libraries and
schemas."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from tenfold.base.errors import ForbiddenFile, MissingEngine, MissingFile, UnsupportedError
from tenfold.base.folders import user_cache, why_shared
from tenfold.ops.schema import Schema, parse
from tenfold.version import pytorch

__all__ = ["Installed", "Libtorch", "cache_folder", "find_libtorch", "require_own"]

SUPPORTED = ((2, 11), (2, 13))  # the first and the last
OLDEST, NEWEST = (".".join(map(str, each)) for each in SUPPORTED)
INSTALL = f"pip install torch=={pytorch}"


@dataclass(frozen=True)
class Installed:
    """One overload as the installed headers declare it: `at::_ops::STRUCT::call`, in ATen/ops/HEADER."""

    schema: Schema
    struct: str
    header: str


@dataclass(frozen=True)
class Libtorch:
    folder: Path
    version: str  # with the build's own suffix, as in 2.13.0+cpu

    @property
    def include(self) -> tuple[Path, ...]:
        return self.folder / "include", self.folder / "include/torch/csrc/api/include"

    @property
    def lib(self) -> Path:
        return self.folder / "lib"

    @property
    def cuda(self) -> bool:
        return (self.lib / "libtorch_cuda.so").exists()

    @property
    def schemas(self) -> dict[str, Installed]:
        return _read_schemas(self.folder)


def find_libtorch() -> Libtorch:
    """The libtorch of the installed package torch, or of the folder that TENFOLD_LIBTORCH names."""
    named = os.environ.get("TENFOLD_LIBTORCH")
    if named:
        folder = Path(named)
    else:
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.origin is None:
            raise MissingEngine(
                "libtenfold is built against libtorch, which is not installed",
                help=INSTALL,
            )
        folder = Path(spec.origin).parent
    return Libtorch(folder, _version(folder))


def _version(folder: Path) -> str:
    try:
        found = re.search(r"__version__ = '([^']+)'", (folder / "version.py").read_text(encoding="utf-8"))
    except OSError:
        found = None
    if found is None:
        raise MissingEngine(f"there is no libtorch in {folder}: its version.py says no version", help=INSTALL)
    numbers = tuple(int(each) for each in re.findall(r"\d+", found[1])[:2])
    if not SUPPORTED[0] <= numbers <= SUPPORTED[1]:
        raise UnsupportedError(
            f"libtenfold is built against libtorch {OLDEST} to {NEWEST}, and {folder} has {found[1]}",
            help=INSTALL,
        )
    return found[1]


_STRUCT = re.compile(r'struct TORCH_API (\w+) \{.*?schema_str = "((?:[^"\\]|\\.)*)";', re.DOTALL)


@functools.cache
def _read_schemas(folder: Path) -> dict[str, Installed]:
    found: dict[str, Installed] = {}
    for path in sorted((folder / "include/ATen/ops").glob("*_ops.h")):
        for struct, text in _STRUCT.findall(path.read_text(encoding="utf-8")):
            schema = parse(re.sub(r"\\(.)", r"\1", text))  # a C++ string literal
            found[schema.qualified] = Installed(schema, struct, path.name)
    return found


def cache_folder() -> Path:
    """Where built libraries are kept: TENFOLD_CAPI_DIR, or tenfold/capi in the user's cache."""
    named = os.environ.get("TENFOLD_CAPI_DIR")
    if named:
        return Path(named).absolute()
    cache = user_cache()
    if cache is None:
        raise MissingFile(
            "there is no folder to keep libtenfold in: this user has no home",
            help="name one in the environment variable TENFOLD_CAPI_DIR",
        )
    return Path(cache, "capi")


def require_own(folder: Path) -> None:
    """Refuse to load libraries from a folder that others could have put them into. Root's are trusted, as the
    system's own libraries are."""
    why = why_shared(folder.stat(), owners=(0,)) if folder.is_dir() else None
    if why is not None:
        raise ForbiddenFile(
            f"libraries in {folder} are not loaded: {why}",
            help=f"chmod go-w {folder}, or name another folder in TENFOLD_CAPI_DIR",
        )
