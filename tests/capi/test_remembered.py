"""A build is found by how the files look that it is made from, and never once they look otherwise."""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path

import pytest

from tenfold.base import loading
from tenfold.capi import remembered
from tenfold.capi.build import build
from tenfold.capi.locate import Libtorch
from tenfold.capi.remembered import State, recall, remember, state_of
from tenfold.ops.table import TABLE
from tests.capi.bridge import built

NAME = "2.13.0+cpu-0123456789abcdef"


@pytest.fixture
def libtorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Libtorch:
    """One of a single operator, beside a package of a single module."""
    for file in ("torch/version.py", "torch/include/ATen/ops/add_ops.h", "package/capi/generate.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("first", encoding="utf-8")
    monkeypatch.setattr(remembered, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(loading, "BEGAN", time.time() + 10)
    return Libtorch(tmp_path / "torch", "2.13.0+cpu")


@pytest.mark.parametrize("file", ["package/capi/generate.py", "torch/include/ATen/ops/add_ops.h"])
def test_a_changed_file_makes_another_state(libtorch: Libtorch, file: str) -> None:
    path = libtorch.folder.parent / file
    before, found = state_of(libtorch), path.stat()
    assert state_of(libtorch) == before
    path.write_text("other", encoding="utf-8")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))  # of the same size, and as old
    assert state_of(libtorch) != before


def test_a_new_file_and_another_setting_make_another_state(libtorch: Libtorch) -> None:
    before = state_of(libtorch, "-O2")
    assert state_of(libtorch, "-O1") != before
    (remembered.PACKAGE / "capi/more.cpp").touch()
    assert state_of(libtorch, "-O2") != before


def test_files_newer_than_the_process_make_no_certain_state(
    libtorch: Libtorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(libtorch)
    assert state is not None and state.certain
    monkeypatch.setattr(loading, "BEGAN", time.time() - 10)
    state = state_of(libtorch)
    assert state is not None and not state.certain


def test_rows_of_the_user_leave_the_state_open(libtorch: Libtorch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TABLE["add"][0], "home", "my_package.ops")
    assert state_of(libtorch) is None


def test_a_build_is_recalled_where_it_is_there_and_its_state_was_certain(tmp_path: Path) -> None:
    certain, doubtful = State("1", True), State("2", False)
    for state in (certain, doubtful, None):
        remember(tmp_path, state, NAME)
        assert recall(tmp_path, state) is None  # not there yet
    (tmp_path / NAME / "lib").mkdir(parents=True)
    (tmp_path / NAME / "lib/libtenfold.so").touch()
    assert recall(tmp_path, certain) == NAME
    assert recall(tmp_path, doubtful) is None


def test_a_damaged_memory_names_no_build(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libtenfold.so").touch()
    remember(tmp_path / "cache", State("1", True), "..")
    assert recall(tmp_path / "cache", State("1", True)) is None


def test_a_build_that_is_remembered_generates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    library = built().library
    module = importlib.import_module("tenfold.capi.build")
    state = State("0" * 64, True)
    remember(library.parents[2], state, library.parents[1].name)
    monkeypatch.setattr(module, "state_of", lambda *facts: state)
    monkeypatch.delattr(module, "generate")
    assert build().library == library
    (library.parents[2] / f"{state.digest}{remembered.SUFFIX}").unlink()
