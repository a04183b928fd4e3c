"""The example packages whose C++ is handed R's tensors, lists and script functions."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bindings.r_process import ROOT, library, run

PACKAGE = ROOT / "examples" / "r" / "linking"  # on handles alone
LLTM = ROOT / "examples" / "r" / "lltm"  # against libtorch
SCRIPT = Path(__file__).with_name("r") / "linking.R"


def _installed(package: Path, folder: Path) -> str:
    """R's folders of packages, with an example installed from a copy of its sources."""
    shutil.copytree(package, folder / "source")
    (folder / "library").mkdir()
    both = f"{folder / 'library'}:{library()}"
    command = ["R", "CMD", "INSTALL", f"--library={folder / 'library'}", str(folder / "source")]
    done = subprocess.run(command, env={**os.environ, "R_LIBS": both}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return both


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _installed(PACKAGE, tmp_path_factory.mktemp("linking"))


@pytest.fixture(scope="module")
def lltm(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _installed(LLTM, tmp_path_factory.mktemp("lltm"))


def test_native_code_calls_functions_with_lists_and_loses_nothing(libraries: str) -> None:
    assert run(SCRIPT, R_LIBS=libraries) == "fine"


def test_native_code_that_throws_jumps_and_hands_over_nothing_ends_in_conditions(tmp_path: Path) -> None:
    hostile = SCRIPT.with_name("hostile")
    assert run(hostile.with_suffix(".R"), R_LIBS=_installed(hostile, tmp_path)) == "fine"


def test_packages_that_import_torch_find_these_functions(tmp_path: Path) -> None:
    both = f"{tmp_path}:{library()}"
    source = shutil.copytree(ROOT / "bindings" / "r-torch", tmp_path / "source")
    command = ["R", "CMD", "INSTALL", f"--library={tmp_path}", str(source)]
    done = subprocess.run(command, env={**os.environ, "R_LIBS": both}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    script = tmp_path / "script.R"
    script.write_text(
        "layer <- torch::nn_linear(2, 1)\nx <- torch::torch_ones(3, 2)\nlayer(x)$sum()$backward()\n"
        "library(torch)\nstopifnot(identical(torch::torch_relu, tenfold::torch_relu))\n"
        "stopifnot(dim(layer$weight$grad) == c(1, 2))\n"
        "cat(as.numeric(torch_sum(x)))\n",
        encoding="utf-8",
    )
    assert run(script, R_LIBS=both) == "6"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["libraries", "lltm"])
def test_native_code_runs_clean_under_valgrind(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    script = SCRIPT if name == "libraries" else SCRIPT.with_name("lltm.R")
    log = tmp_path / "valgrind.log"
    debugger = f"valgrind --error-exitcode=9 --log-file={log} --undef-value-errors=no"
    command = ["R", "-d", debugger, "--vanilla", "--quiet", "-f", str(script)]
    environment = {**os.environ, "R_LIBS": request.getfixturevalue(name), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, (done.stdout[-1500:], log.read_text()[-3000:])


@pytest.mark.slow
def test_native_code_that_links_libtorch_shares_tensors_and_functions(lltm: str) -> None:
    assert run(SCRIPT.with_name("lltm.R"), R_LIBS=lltm) == "fine"


@pytest.mark.slow
@pytest.mark.parametrize("package", [PACKAGE, LLTM], ids=lambda path: path.name)
def test_r_itself_finds_nothing_wrong_with_the_example(package: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "R_LIBS": str(library()), "_R_CHECK_FORCE_SUGGESTS_": "false"}
    archive = f"tenfold{package.name}_0.1.0.tar.gz"
    for command in (["build", str(package)], ["check", "--no-manual", archive]):
        done = subprocess.run(
            ["R", "CMD", *command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "Status: OK" in done.stdout, done.stdout[-4000:]
