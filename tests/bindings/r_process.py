"""The R package, installed once, and R scripts run against it by a real Rscript."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tenfold.capi.r_package import built_library, install

__all__ = ["ROOT", "built_library", "evaluate", "library", "run", "start"]

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def library() -> Path:
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed: apt-get install r-base-core")
    return install(ROOT / "build/r/tenfold", ROOT / "build/r-library")


def run(script: Path, *arguments: object, timeout: float = 300, **variables: str) -> str:
    """What a script prints; its failure is the test's."""
    process = start(script, *arguments, **variables)
    try:
        printed, problems = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == 0, f"{printed[-2000:]}\n{problems[-3000:]}"
    return printed


def start(script: Path, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "R_LIBS": str(library()), "OMP_NUM_THREADS": "1", **variables}
    command = ["Rscript", "--vanilla", str(script), *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def evaluate(folder: Path, code: str, *arguments: object, **variables: str) -> str:
    """What a piece of R prints."""
    script = folder / "script.R"
    script.write_text(f"library(tenfold)\n{code}\n", encoding="utf-8")
    return run(script, *arguments, **variables)
