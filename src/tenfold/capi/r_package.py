"""The R package as a whole: its source laid out, and installed by R itself into a library of its own.

`python -m tenfold.capi.r_package` does it in build/r, whose `library` is what R_LIBS then names.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tenfold.base.errors import EngineError, MissingEngine
from tenfold.capi.bindings_r import c_source, enums_source, operators, r_source
from tenfold.capi.build import build
from tenfold.capi.describe import describe
from tenfold.capi.locate import find_libtorch
from tenfold.capi.r_by_hand import SOURCES
from tenfold.capi.r_help import help_page, parts_page

__all__ = ["built_library", "install", "lay_out"]


def lay_out(folder: Path, sources: Path = SOURCES) -> str:
    """Write the package's source into a folder, anew; returns what tells it apart from other versions."""
    description = describe(find_libtorch())
    made = operators(description.functions)
    generated = {"R/operators.R": r_source(made), "src/operators.c": c_source(made, description.stands_for)}
    generated["R/enums.R"] = enums_source(description.enums)
    parts, public = [op for op in made if op.is_part], [op for op in made if not op.is_part]
    generated |= {f"man/torch_{op.name}.Rd": help_page(op) for op in public}
    generated["man/parts_of_operators.Rd"] = parts_page(parts)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sources, folder)
    for name, text in generated.items():
        (folder / name).write_text(text, encoding="utf-8")
    digest = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def built_library() -> dict[str, str]:
    """The variables that tell the package's configure where libtenfold is."""
    if "TENFOLD_LIB" in os.environ:
        return {name: os.environ[name] for name in ("TENFOLD_INCLUDE", "TENFOLD_LIB")}
    built = build()
    return {"TENFOLD_INCLUDE": str(built.include), "TENFOLD_LIB": str(built.lib)}


def install(folder: Path, library: Path, docs: bool = True) -> Path:
    """The library folder with the package in it, installed unless it is there as it would be now."""
    if shutil.which("R") is None:
        raise MissingEngine("R is not installed", help="apt-get install r-base-core")
    environment = {**os.environ, **built_library()}
    library.mkdir(parents=True, exist_ok=True)
    with open(library / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        version = f"{lay_out(folder)} {environment['TENFOLD_LIB']} {docs}"
        stamp = library / "installed"
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != version:
            command = [
                "R",
                "CMD",
                "INSTALL",
                f"--library={library}",
                *([] if docs else ["--no-docs"]),
                str(folder),
            ]
            run = subprocess.run(command, env=environment, capture_output=True, text=True)
            if run.returncode != 0:
                raise EngineError(f"R CMD INSTALL failed:\n{run.stderr[-4000:]}")
            stamp.write_text(version, encoding="utf-8")
    return library


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Install the R package.")
    parser.add_argument(
        "--source", type=Path, default=Path("build/r/tenfold"), help="where its source is laid out"
    )
    parser.add_argument("--library", type=Path, default=Path("build/r-library"), help="where it is installed")
    parser.add_argument("--lay-out-only", action="store_true")
    parsed = parser.parse_args(arguments)
    if parsed.lay_out_only:
        lay_out(parsed.source)
        print(parsed.source)
    else:
        print(f"R_LIBS={install(parsed.source.absolute(), parsed.library.absolute())}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
