"""The examples of libtenfold's tensors and errors, and the commands that a program is built with."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenfold.capi import commands
from tenfold.capi.build import Built, build
from tenfold.command import cli
from tenfold.version import release
from tests.capi.bridge import built

EXAMPLES = Path(__file__).parents[2] / "examples" / "c"
C99 = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"]
CPP = ["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"]


def compiled(source: Path, folder: Path, library: Built, *flags: str) -> Path:
    program = folder / source.stem
    command = [*(CPP if source.suffix == ".cpp" else C99), *flags, str(source), *library.compile_flags]
    done = subprocess.run([*command, *library.link_flags, "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def output(*command: str | Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [str(c) for c in command], env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def test_tensors_in_c(tmp_path: Path) -> None:
    printed = output(compiled(EXAMPLES / "01_tensors.c", tmp_path, built()))
    assert "largest: 77" in printed and "a[1, 2] = 66" in printed and "live tensors: 0" in printed


def test_the_tutorials_programs_print_what_it_says(tmp_path: Path) -> None:
    text = (EXAMPLES.parents[1] / "docs" / "tutorials" / "c.md").read_text(encoding="utf-8")
    programs = re.findall(r"```c\n(.*?)```\n\n```output\n(.*?)```", text, re.DOTALL)
    assert len(programs) == 2
    for number, (program, shown) in enumerate(programs):
        source = tmp_path / f"tutorial{number}.c"
        source.write_text(program)
        assert output(compiled(source, tmp_path, built())) == shown


def test_errors_in_c(tmp_path: Path) -> None:
    printed = output(compiled(EXAMPLES / "02_errors.c", tmp_path, built()))
    codes = [line.split(":")[0].strip() for line in printed.splitlines() if line.startswith("  TN_ERROR")]
    expected = ["TORCH", "ARGUMENT", "MEMORY", "INDEX", "NOT_FOUND", "ARGUMENT"]
    assert codes == [f"TN_ERROR_{each}" for each in expected]
    assert "other is NULL" in printed and "(2x3 and 2x3)" in printed


def test_handles_in_cpp(tmp_path: Path) -> None:
    printed = output(compiled(EXAMPLES / "06_handles.cpp", tmp_path, built()))
    assert "singular" in printed and "live tensors: 0" in printed


@pytest.mark.slow
def test_objects_of_libtorch_in_cpp(tmp_path: Path) -> None:
    library, program = built(), tmp_path / "torch"
    flags = [*library.compile_flags, *library.torch_compile_flags]
    links = [*library.link_flags, *library.torch_link_flags]
    source = EXAMPLES / "10_torch.cpp"
    output("c++", "-Wall", "-Wextra", "-Werror", source, *flags, *links, "-o", program)
    printed = output(program)
    assert "first element: 2" in printed and "sum of squares: 12" in printed and "live tensors: 0" in printed


def test_ctypes_in_python() -> None:
    printed = output(sys.executable, EXAMPLES / "07_ctypes.py", built().library)
    assert "shapes cannot be multiplied" in printed and "live tensors: 0" in printed


def test_checked_mode_finds_nothing_to_report_in_the_examples(tmp_path: Path) -> None:
    program = compiled(EXAMPLES / "01_tensors.c", tmp_path, built())
    done = subprocess.run(
        [program], env={**os.environ, "TENFOLD_CHECKED": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stderr == ""


def test_the_flags_build_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capi", "flags"]) == 0
    flags = capsys.readouterr().out.split()
    assert flags == [*built().compile_flags, *built().link_flags]
    program = tmp_path / "program"
    subprocess.run([*C99, EXAMPLES / "02_errors.c", *flags, "-o", program], check=True)
    assert "TN_ERROR" in output(program)


def test_flags_of_a_folder_with_spaces_are_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a b's"
    folder.symlink_to(built().folder)
    spaced = Built(folder, built().libtorch)
    monkeypatch.setattr(commands, "build", lambda **settings: spaced)
    assert cli.main(["capi", "flags"]) == 0
    assert shlex.split(capsys.readouterr().out) == [*spaced.compile_flags, *spaced.link_flags]


def test_the_pkg_config_file_and_the_header_tell_of_the_build(capsys: pytest.CaptureFixture[str]) -> None:
    described = (built().lib / "pkgconfig" / "tenfold.pc").read_text(encoding="utf-8")
    assert f"prefix={built().folder}" in described and f"Version: {release}" in described
    assert cli.main(["capi", "header"]) == 0
    assert "tn_tensor_from_data" in capsys.readouterr().out


def test_libtenfold_itself_needs_neither_libtorch_nor_cpp() -> None:
    needed = subprocess.run(
        ["readelf", "-d", built().library], capture_output=True, text=True, check=True
    ).stdout
    libraries = [line.split("[")[1].rstrip("]\n") for line in needed.splitlines() if "(NEEDED)" in line]
    assert not [each for each in libraries if any(part in each for part in ("torch", "c10", "stdc++"))], (
        libraries
    )


# What libtorch itself keeps until the end of a process is no leak of a program that uses it.
SUPPRESSED = (
    "leak:libtorch\nleak:libc10\nleak:libgomp\nleak:libdnnl\nleak:libmkl\nleak:dl_open\nleak:dlopen\n"
)


def sanitized(source: Path, folder: Path, *arguments: str | Path) -> None:
    """A program and the library it uses, run under the address and undefined-behaviour sanitizers."""
    library = build(sanitize=("address", "undefined"))
    program = compiled(source, folder, library, "-fsanitize=address,undefined", "-pthread", "-rdynamic")
    suppressions = folder / "leaks"
    suppressions.write_text(SUPPRESSED, encoding="utf-8")
    leaks = f"suppressions={suppressions}:print_suppressions=0"
    # More memory than there is fails, as it does without a sanitizer, rather than end the program.
    memory = "detect_leaks=1:allocator_may_return_null=1"
    settings = {"UBSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": memory}
    output(program, *arguments, LSAN_OPTIONS=leaks, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["01_tensors.c", "02_errors.c", "03_xor.c", "05_script.c", "06_handles.cpp", "08_streams.c"]
)
def test_address_and_undefined_sanitizers_find_nothing(name: str, tmp_path: Path) -> None:
    arguments = [tmp_path / "traced.pt"] if name == "05_script.c" else []
    sanitized(EXAMPLES / name, tmp_path, *arguments)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
@pytest.mark.parametrize("name", ["01_tensors.c", "02_errors.c"])
def test_valgrind_finds_no_invalid_access_and_no_leak_of_ours(name: str, tmp_path: Path) -> None:
    program = compiled(EXAMPLES / name, tmp_path, built())
    report = tmp_path / "valgrind.xml"
    command = ["valgrind", "--leak-check=full", "--xml=yes", f"--xml-file={report}", program]
    output(*command, OMP_NUM_THREADS="1")
    found = report.read_text(encoding="utf-8")
    blocks = [block for block in found.split("<error>")[1:] if "libtenfold" in block]
    kinds = (
        "Leak_DefinitelyLost",
        "InvalidRead",
        "InvalidWrite",
        "InvalidFree",
        "UninitCondition",
        "UninitValue",
    )
    wrong = [block for block in blocks if any(f"<kind>{kind}</kind>" in block for kind in kinds)]
    assert not wrong, wrong[0][:3000]
