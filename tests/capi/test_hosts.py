"""Hosts that do what is unusual or wrong: libtenfold neither crashes nor leaves anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.capi.bridge import built
from tests.capi.test_examples import compiled, sanitized

HOSTS = Path(__file__).with_name("hosts")


def ends_well(program: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(program), *arguments],
        cwd=program.parent,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.mark.parametrize(
    "name", ["nesting", "hooks", "left_open", "resized", "threads", "forks", "exhausted"]
)
def test_an_odd_host_ends_well(name: str, tmp_path: Path) -> None:
    program = compiled(HOSTS / f"{name}.c", tmp_path, built(), "-pthread")
    ends_well(program)
    assert "tenfold: " not in ends_well(program, TENFOLD_CHECKED="1").stderr


@pytest.mark.parametrize("checked", ["0", "1"], ids=["plain", "checked"])
def test_wrong_tags_counts_and_handles_are_errors(checked: str, tmp_path: Path) -> None:
    program = compiled(HOSTS / "wrong_kinds.c", tmp_path, built())
    ends_well(program, TENFOLD_CHECKED=checked)


@pytest.mark.parametrize("binding", ["", "1"], ids=["lazy", "now"])
def test_libtorch_keeps_its_own_blas_where_the_host_has_another(binding: str, tmp_path: Path) -> None:
    program = compiled(HOSTS / "own_blas.c", tmp_path, built(), "-rdynamic")
    ends_well(program, LD_BIND_NOW=binding)


def test_the_streams_exceptions_and_locale_of_a_cpp_host_stay_whole(tmp_path: Path) -> None:
    done = ends_well(compiled(HOSTS / "cpp_streams.cpp", tmp_path, built(), "-rdynamic"))
    assert done.stdout == "before 1.5\nthe host's own 1.234.567\n"
    assert "was resized" in done.stderr and done.stderr.endswith("between 1\n")


@pytest.mark.slow
@pytest.mark.parametrize("checked", ["0", "1"], ids=["plain", "checked"])
def test_a_tensor_holds_what_an_operator_put_in_its_place(checked: str, tmp_path: Path) -> None:
    torch = built().libtorch
    flags = ["-std=c++20", *(f"-isystem{each}" for each in torch.include), f"-L{torch.lib}"]
    libraries = [f"-Wl,-rpath,{torch.lib}", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10"]
    program = compiled(HOSTS / "swapping.cpp", tmp_path, built(), *flags, *libraries)
    ends_well(program, TENFOLD_CHECKED=checked)


def test_a_library_that_is_closed_and_loaded_again_goes_on(tmp_path: Path) -> None:
    program = compiled(HOSTS / "closing.c", tmp_path, built(), "-ldl")
    ends_well(program, str(built().library))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "nesting.c",
        "hooks.c",
        "left_open.c",
        "resized.c",
        "threads.c",
        "forks.c",
        "wrong_kinds.c",
        "cpp_streams.cpp",
    ],
)
def test_sanitizers_find_nothing_in_odd_hosts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sanitized(HOSTS / name, tmp_path)
