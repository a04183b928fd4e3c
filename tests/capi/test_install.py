"""A prefix that `tenfold capi install` filled: programs are built against it alone, the cache being gone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenfold.capi.locate import cache_folder
from tenfold.command import cli
from tenfold.purple.cli import main as purple
from tenfold.purple.emit_c import compile_program
from tenfold.purple.interpret import expand_program
from tenfold.version import release
from tests.capi.bridge import built

EXAMPLES = Path(__file__).parents[2] / "examples"
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
RT = """
#include <stdio.h>
#include <tenfold_rt.h>
int main(void) {
    int64_t shape[] = {2, 2};
    int64_t x = rt_torch_tensor_ones(shape, 2);
    printf("%g\\n", rt_torch_torchtensor_sum(x));
    rt_torch_torchtensor_free(x);
    return 0;
}
"""
PURPLE = "(define x (tensor (list 1.0 2.0 3.0)))\n(print (tensor->list (* x x)))\n"
LISTS = """
cmake_minimum_required(VERSION 3.16)
project(program C CXX)
find_package(Tenfold 0.1 REQUIRED)
add_executable(tensors tensors.c)
target_link_libraries(tensors Tenfold::tenfold)
add_executable(handles handles.cpp)
target_link_libraries(handles Tenfold::tenfold)
add_executable(rt rt.c)
target_link_libraries(rt Tenfold::tenfold_rt)
add_executable(lisp lisp.c)
target_link_libraries(lisp Tenfold::purple)
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Installed from a cache of its own, which then is removed."""
    folder = tmp_path_factory.mktemp("install")
    kept, cache = built().folder, folder / "cache"
    cache.mkdir()
    shutil.copytree(kept, cache / kept.name, symlinks=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENFOLD_CAPI_DIR", str(cache))
        assert cli.main(["capi", "install", "--prefix", str(folder / "usr")]) == 0
    shutil.rmtree(cache)
    yield folder / "usr"


def run(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [str(each) for each in command], env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def flags(prefix: Path, *packages: str) -> list[str]:
    return shlex.split(
        run("pkg-config", "--cflags", "--libs", *packages, PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
    )


def purple_source(folder: Path) -> Path:
    (folder / "lisp.c").write_text(compile_program(expand_program(PURPLE, "lisp.purple")), encoding="utf-8")
    return folder / "lisp.c"


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
def test_c_is_built_with_the_flags_of_pkg_config(compiler: str, prefix: Path, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = EXAMPLES / "c" / "01_tensors.c"
    run(compiler, "-std=c99", *STRICT, source, *flags(prefix, "tenfold"), "-o", tmp_path / "tensors")
    assert "largest: 77" in run(tmp_path / "tensors")


@pytest.mark.slow
def test_cpp_is_built_with_the_flags_of_pkg_config(prefix: Path, tmp_path: Path) -> None:
    source = EXAMPLES / "c" / "06_handles.cpp"
    run("c++", "-std=c++17", *STRICT, source, *flags(prefix, "tenfold"), "-o", tmp_path / "handles")
    assert "live tensors: 0" in run(tmp_path / "handles")


def test_rt_programs_need_nothing_else(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "rt.c").write_text(RT, encoding="utf-8")
    run("cc", "-std=c99", *STRICT, tmp_path / "rt.c", *flags(prefix, "tenfold_rt"), "-o", tmp_path / "rt")
    assert run(tmp_path / "rt") == "4\n"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_c_of_a_purple_program_is_compiled_without_a_warning(
    compiler: str, prefix: Path, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", purple_source(tmp_path)]
    run(*command, *flags(prefix, "purple"), "-o", tmp_path / "lisp")
    assert run(tmp_path / "lisp") == "(1.0 4.0 9.0)\n"


@pytest.mark.slow
def test_a_purple_program_is_linked_with_the_static_library(prefix: Path, tmp_path: Path) -> None:
    archive = prefix / "lib" / "libpurple.a"
    command = ["cc", "-std=c99", purple_source(tmp_path), f"-I{prefix}/include/purple", archive]
    run(*command, *flags(prefix, "tenfold"), "-lm", "-lpthread", "-o", tmp_path / "lisp")
    assert run(tmp_path / "lisp") == "(1.0 4.0 9.0)\n"
    assert "libpurple" not in run("ldd", tmp_path / "lisp")


@pytest.mark.slow
def test_cmake_finds_the_package(prefix: Path, tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    (tmp_path / "CMakeLists.txt").write_text(LISTS, encoding="utf-8")
    shutil.copy(EXAMPLES / "c" / "01_tensors.c", tmp_path / "tensors.c")
    shutil.copy(EXAMPLES / "c" / "06_handles.cpp", tmp_path / "handles.cpp")
    (tmp_path / "rt.c").write_text(RT, encoding="utf-8")
    purple_source(tmp_path)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert "largest: 77" in run(tmp_path / "build/tensors") and run(tmp_path / "build/rt") == "4\n"
    assert "live tensors: 0" in run(tmp_path / "build/handles")
    assert run(tmp_path / "build/lisp") == "(1.0 4.0 9.0)\n"


def test_purple_build_takes_the_folder_of_an_installed_libtenfold(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "lisp.purple").write_text(PURPLE, encoding="utf-8")
    command = ["build", str(tmp_path / "lisp.purple"), "-o", str(tmp_path / "lisp")]
    assert purple([*command, "--rpath", f"{prefix}/lib"]) == 0
    assert f"{prefix}/lib/libtenfold.so.0" in run("ldd", tmp_path / "lisp")
    assert run(tmp_path / "lisp") == "(1.0 4.0 9.0)\n"


def test_purple_flags_compile_and_link_its_c(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert purple(["flags"]) == 0
    run("cc", purple_source(tmp_path), *shlex.split(capsys.readouterr().out), "-o", tmp_path / "lisp")
    assert run(tmp_path / "lisp") == "(1.0 4.0 9.0)\n"


def test_libraries_have_sonames_and_links_to_them(prefix: Path) -> None:
    for name in ("libtenfold", "libtenfold_rt", "libpurple"):
        library = prefix / "lib" / f"{name}.so"
        assert library.is_symlink() and (prefix / "lib" / f"{name}.so.0").is_symlink()
        assert f"Library soname: [{name}.so.0]" in run("readelf", "-d", library)


def test_what_a_program_loads_lies_in_the_prefix(prefix: Path, tmp_path: Path) -> None:
    text = "#include <stdio.h>\n#include <tenfold.h>\nint main(void) { tn_available(); char line[999];\n"
    text += 'FILE *maps = fopen("/proc/self/maps", "r");\n'
    text += "while (fgets(line, sizeof line, maps)) fputs(line, stdout); return 0; }\n"
    (tmp_path / "maps.c").write_text(text, encoding="utf-8")
    run("cc", tmp_path / "maps.c", *flags(prefix, "tenfold"), "-o", tmp_path / "maps")
    loaded = [line for line in run(tmp_path / "maps").splitlines() if "libtenfold" in line]
    assert any("libtenfold_torch" in line for line in loaded)
    assert all(f"{prefix}/lib/" in line for line in loaded)


def test_destdir_stands_for_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built()
    monkeypatch.setenv("DESTDIR", str(tmp_path))
    assert cli.main(["capi", "install", "--prefix", "/opt/tenfold"]) == 0
    assert (tmp_path / "opt/tenfold/include/tenfold.h").exists()


def test_a_prefix_may_be_moved_where_there_are_spaces(tmp_path: Path) -> None:
    built()
    assert cli.main(["capi", "install", "--prefix", str(tmp_path / "old")]) == 0
    (tmp_path / "old").rename(tmp_path / "new place")
    (tmp_path / "rt.c").write_text(RT, encoding="utf-8")
    run("cc", tmp_path / "rt.c", *flags(tmp_path / "new place", "tenfold_rt"), "-o", tmp_path / "rt")
    assert run(tmp_path / "rt") == "4\n"


def test_a_relative_prefix_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capi", "install", "--prefix", "here"]) == 1
    assert "here is no absolute path" in capsys.readouterr().err


def test_a_prefix_that_cannot_be_written_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built()
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "folder/lib/libtenfold.so").mkdir(parents=True)
    for prefix, refused in (("file", "file/include"), ("folder", "folder/lib/libtenfold.so")):
        assert cli.main(["capi", "install", "--prefix", str(tmp_path / prefix)]) == 1
        assert re.search(rf"FileError: .*{refused}\S* cannot be written: \w", capsys.readouterr().err)
    left = sorted(each.name for each in (tmp_path / "folder/lib").glob("libtenfold.so*"))
    assert left == ["libtenfold.so", f"libtenfold.so.{release}"]


def test_flags_of_rt_link_it(capsys: pytest.CaptureFixture[str]) -> None:
    built()
    assert cli.main(["capi", "flags", "--rt"]) == 0
    assert "-ltenfold_rt -ltenfold " in capsys.readouterr().out
    assert cache_folder().exists()
