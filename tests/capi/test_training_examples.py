"""The C programs that learn and trace: compiled as strict C99, they do as they say and leave nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from tenfold.command.demo import digits
from tests.capi.bridge import built, handles, library

EXAMPLES = Path(__file__).parents[2] / "examples" / "c"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-g"]


def compiled(name: str, folder: Path) -> Path:
    program = folder / name
    source = EXAMPLES / f"{name}.c"
    command = ["cc", *STRICT, *built().compile_flags, str(source), "-o", str(program), *built().link_flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def output(*command: str | Path) -> str:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 tensors left" in done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits as a safetensors file."""
    path = tmp_path_factory.mktemp("digits") / "digits.safetensors"
    training, test = digits.load()
    arrays = [
        tn.cat([training.images, test.images]).reshape(-1, 64).numpy(),
        tn.cat([training.labels, test.labels]).numpy(),
    ]
    lib = library()
    tensors = [
        lib.tn_tensor_from_data(
            each.ctypes.data, code, (np.ctypeslib.ctypes.c_int64 * each.ndim)(*each.shape), each.ndim, None, 0
        )
        for each, code in zip(arrays, (6, 4), strict=True)
    ]
    names = (np.ctypeslib.ctypes.c_char_p * 2)(b"images", b"labels")
    lib.tn_save_safetensors(str(path).encode(), names, *handles(tensors))
    for each in tensors:
        lib.tn_free(each)
    return path


def test_xor_is_learned(tmp_path: Path) -> None:
    text = output(compiled("03_xor", tmp_path))
    assert re.findall(r"(\d) xor (\d) = (\d)", text) == [(a, b, str(int(a != b))) for a in "01" for b in "01"]


def test_digits_are_learned(tmp_path: Path, images: Path) -> None:
    text = output(compiled("04_digits", tmp_path), images)
    right, of = map(int, re.search(r"(\d+) of (\d+) new digits", text).groups())
    assert right / of > 0.93


def test_a_c_function_is_traced_saved_and_loaded(tmp_path: Path) -> None:
    text = output(compiled("05_script", tmp_path), tmp_path / "traced.pt")
    assert "the graph has aten::relu" in text
    assert "TN_ERROR_NOT_FOUND: tn_module_load: the file /nowhere/module.pt cannot be opened" in text
    assert len(re.findall(r"10\n\s*61", text)) == 2


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    program = compiled("04_digits", tmp_path)
    done = subprocess.run([program, tmp_path / "none.safetensors"], capture_output=True, text=True)
    assert done.returncode == 1 and "none.safetensors" in done.stderr and "0 tensors left" in done.stdout


# The dynamic loader compares strings by words, past their ends: as valgrind's own files say of older ones.
KINDS = ("Addr1", "Addr2", "Addr4", "Addr8", "Addr16", "Addr32", "Cond", "Value8")
LOADER = "\n".join(
    f"{{\n  loader\n  Memcheck:{kind}\n  ...\n  obj:*/ld-linux-x86-64.so.2\n}}" for kind in KINDS
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["03_xor", "05_script"])
def test_valgrind_finds_nothing(name: str, tmp_path: Path) -> None:
    valgrind = shutil.which("valgrind")
    assert valgrind, "apt-get install valgrind"
    (tmp_path / "loader.supp").write_text(LOADER)
    options = ["-q", "--error-exitcode=9", f"--suppressions={tmp_path / 'loader.supp'}"]
    arguments = [tmp_path / "traced.pt"] if name == "05_script" else []
    output(valgrind, *options, compiled(name, tmp_path), *arguments)
