"""Stubs that are written from the table: type checkers find wrong uses by them."""

import ast
import json
import keyword
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import setuptools

import tenfold
from tenfold.command import stubs
from tenfold.command.stubs.dialect import dialect_text
from tenfold.mlir import torch_dialect

PACKAGE = Path(tenfold.__file__).parent
USES = Path(__file__).with_name("uses.py")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package as an install leaves it: its sources with the stubs beside them."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, folder / "tenfold", ignore=lambda _, names: [
        each for each in names if "." in each and not each.endswith(".py")
    ])  # fmt: skip
    shutil.copy(PACKAGE / "py.typed", folder / "tenfold")
    stubs.write(folder)
    return folder


def wrong_lines(uses=USES):
    text = uses.read_text(encoding="utf-8").splitlines()
    return {i for i, line in enumerate(text, 1) if line.endswith("# wrong")}


def test_there_are_stubs_for_the_package_the_tensor_and_its_modules(installed):
    names = {str(each.relative_to(installed / "tenfold")) for each in installed.rglob("*.pyi")}
    assert names == {
        "__init__.pyi", "linalg.pyi", "fft.pyi", "special.pyi", "nn/functional.pyi", "tensor/tensor.pyi",
        "exporting/dialect.pyi",
    }  # fmt: skip
    for each in installed.rglob("*.pyi"):
        ast.parse(each.read_text(encoding="utf-8"))


def test_a_stub_has_overloads_results_by_name_and_docstrings():
    text = stubs.module_text("tenfold")
    assert text.count("\ndef max(") == 3
    assert "-> _max_dim: ..." in text and "from tenfold.tensor.tensor import _max_dim as _max_dim" in text
    assert "exp(self) / sum(exp(self)) along a dimension" in text
    assert "def zeros(*size: _int, dtype: " in text
    assert "float: _DType" in text


def test_stubs_are_written_where_pytorch_is_not_installed():
    script = "import sys; sys.modules['torch'] = None; from tenfold.command import stubs; "
    done = subprocess.run(
        [sys.executable, "-c", f"{script}print(stubs.module_text('tenfold'))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "FloatStorage: _type[_Any]" in done.stdout


def test_every_op_of_the_dialect_is_in_the_stub():
    classes = {each.name for each in ast.parse(dialect_text()).body if isinstance(each, ast.ClassDef)}
    names = [each.removeprefix("torch.").split(".") for each in torch_dialect.operations()]
    lacking = [
        each
        for each in names
        if not any(map(keyword.iskeyword, each)) and f"_ops_{'_'.join(each)}" not in classes
    ]
    assert len(names) > 800 and lacking == []


def test_the_file_of_uses_has_two_hundred():
    typed = [line for line in USES.read_text(encoding="utf-8").splitlines() if re.match(r"\w+: .* = ", line)]
    assert len(typed) >= 200 and len(wrong_lines()) >= 70


@pytest.mark.slow
@pytest.mark.parametrize("uses", [USES, USES.with_name("dialect_uses.py")], ids=lambda path: path.stem)
def test_mypy_finds_the_wrong_uses_and_no_others(uses, installed):
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    command += ["--config-file=", "--cache-dir=/dev/null", str(uses)]
    done = subprocess.run(
        command, env={**os.environ, "MYPYPATH": str(installed)}, capture_output=True, text=True
    )
    found = {
        int(line.split(":")[1])
        for line in done.stdout.splitlines()
        if "uses.py" in line and ": error:" in line
    }
    assert found == wrong_lines(uses), done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright_finds_the_wrong_uses_and_no_others(installed, tmp_path):
    shutil.copy(USES, tmp_path)  # pyright looks at nothing outside of its project
    config = {"extraPaths": [str(installed)], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = ["pyright", "-p", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if " - error:" in line}
    assert found == wrong_lines(), done.stdout


@pytest.mark.slow
def test_stubtest_agrees_with_the_running_package(installed, tmp_path):
    """Functions of the table take `*args` when they run, so that is no disagreement. A Tensor has the names
    of distributed ones as soon as `tenfold.distributed` is imported."""
    code = "import sys; from mypy.stubtest import main; import tenfold.distributed; sys.exit(main())"
    command = [sys.executable, "-c", code, "--concise", "--ignore-missing-stub", stubs.CLASS]
    paths = {"MYPYPATH": str(installed), "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [*command, *stubs.MODULES[1:]],
        env={**os.environ, **paths},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "Found" not in done.stderr and "not checking" not in done.stdout
    lines = [each for each in done.stdout.splitlines() if "stub does not have *args parameter" not in each]
    assert lines == []


@pytest.mark.slow
def test_a_wheel_has_the_stubs(tmp_path):
    root = PACKAGE.parent.parent
    source = tmp_path / "source"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, source)
    shutil.copytree(PACKAGE, source / "src" / "tenfold", ignore=shutil.ignore_patterns("__pycache__"))
    # As pip builds it: by an interpreter that finds what the build needs by PYTHONPATH alone.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    command = [
        tmp_path / "bare/bin/python",
        "-c",
        "from setuptools import build_meta as b; b.build_wheel('..')",
    ]
    packages = {**os.environ, "PYTHONPATH": str(Path(setuptools.__file__).parent.parent)}
    subprocess.run(command, check=True, cwd=source, env=packages)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"tenfold/__init__.pyi", "tenfold/tensor/tensor.pyi", "tenfold/py.typed"} <= set(names)
    assert "setup.py" not in names
