"""The tools that choose tests and change sources at random."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import mutants as mutating
from tools.affected import ROOT, Selection, affected, declared, selections
from tools.mutants import mutants

SOURCES = ROOT / "src" / "tenfold"


def test_a_file_of_the_op_table_is_examined_by_the_tests_of_its_rows():
    nearest, *others = selections(SOURCES / "ops" / "softmax.py")
    assert "_softmax]" in nearest.keyword.split(" or ")
    assert [each.paths for each in others] == [("tests/ops",)]


def test_schemas_over_several_lines_are_rows_too():
    assert declared('@op(\n    "norm.Scalar(Tensor self, "\n    "Scalar p=2) -> Tensor",\n)') == [
        "norm.Scalar"
    ]


def test_rows_declared_in_f_strings_are_selected_by_how_they_begin():
    assert declared('@op(f"pool{dims}d_with_indices(Tensor self) -> Tensor")') == ["pool{dims}d_with_indices"]
    nearest, *_ = selections(SOURCES / "ops" / "pooling.py")
    words = nearest.keyword.split(" or ")
    assert "_adaptive_avg_pool" in words and "avg_pool" in words
    for source in (SOURCES / "ops").glob("*.py"):
        assert all(word for each in selections(source) if each.keyword for word in each.keyword.split(" or "))


def test_what_changed_is_examined_by_its_mirror_and_tests_by_themselves():
    changed = [
        SOURCES / "runtime" / "guards.py",
        ROOT / "tests" / "nn" / "test_module.py",
        ROOT / "README.md",
    ]
    assert affected(changed) == ["tests/runtime/test_guards.py", "tests/nn/test_module.py"]
    assert affected([SOURCES / "capi" / "needs.py"]) == []  # its tests build a library first


def test_modules_at_the_top_are_examined_by_their_tests_or_those_that_name_them():
    assert affected([SOURCES / "linalg.py"]) == ["tests/test_linalg.py"]
    assert "tests/exporting/test_script.py" in affected([SOURCES / "jit.py"])
    assert "tests/runtime/test_sizes.py" in affected([SOURCES / "compiler.py"])
    assert affected([SOURCES / "hub.py"]) == ["tests/test_import.py"]
    tests = [Path(each) for module in SOURCES.glob("*.py") for each in affected([module])]
    assert all((ROOT / each).is_file() for each in tests)


def test_helpers_of_tests_are_examined_by_the_tests_around_them():
    tests = ROOT / "tests"
    assert affected([tests / "nn" / "comparing.py", tests / "ops" / "conftest.py"]) == [
        "tests/nn",
        "tests/ops",
    ]
    assert affected([tests / "distributed" / "eight_devices" / "costs.py"]) == ["tests/distributed"]
    assert "tests/test_import.py" in affected([tests / "conftest.py"])
    assert affected([tests / "capi" / "conftest.py"]) == []


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of one function and three tests of it, of which one fails, and a copy of it."""
    files = {
        "pytest.ini": "[pytest]\n",
        "src/plus.py": "def plus(a):\n    return a + 1\n",
        "tests/test_plus.py": "from plus import plus\n"
        "def test_wrong(): assert plus(1) == 3\n"
        "def test_right(): assert plus(1) == 2\n"
        "def test_other(): pass\n",
    }
    for root in tmp_path / "main", tmp_path / "copy":
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "tools").symlink_to(ROOT / "tools")
    monkeypatch.setattr(mutating, "ROOT", tmp_path / "main")
    monkeypatch.setattr(mutating, "selections", lambda path: [Selection(("tests/test_plus.py",))])
    return tmp_path / "main" / "src/plus.py"


def test_tests_that_fail_unchanged_kill_no_mutant(project, tmp_path, capsys):
    baseline = mutating.Baseline(tmp_path / "copy", 60)
    (selection,) = mutating.selections(project)
    minus, two = mutants(project)
    for mutant in (minus, two):
        assert mutating.judge(mutant, baseline) == mutating.Verdict(True, selection)
    assert capsys.readouterr().out == "left out, fails unchanged: tests/test_plus.py::test_wrong\n"
    assert baseline.parts(selection, minus) == [Selection(("tests/test_plus.py::test_right",)), selection]
    (tmp_path / "copy/tests/test_plus.py").write_text("def test_right(): pass\ndef test_wrong(): assert 0\n")
    assert mutating.judge(minus, baseline) == mutating.Verdict(True)
    assert (tmp_path / "copy/src/plus.py").read_text() == project.read_text()


def test_a_mutant_has_a_few_times_as_long_as_the_unchanged_sources(tmp_path, monkeypatch):
    good, slow = Selection(("tests/nn/test_plus.py",)), Selection(("tests/nn/test_slow.py",))
    took, asked = {good: 10, slow: 1000}, []

    def run(selection, tree, seconds, more):
        Path(more[-1]).write_text('{"callers": {}, "failed": []}')
        asked.append(seconds)
        return 0, took[selection]

    monkeypatch.setattr(mutating, "_run", run)
    baseline = mutating.Baseline(tmp_path, 600)
    limits = [baseline.limit(selection) for selection in (good, slow, good)]
    assert limits == [30 + mutating.PATIENCE, 600, 30 + mutating.PATIENCE] and asked == [600, 600]


@pytest.mark.parametrize(
    ("test", "passes"),
    [("assert True", True), ("assert False", False), ("while True: pass", False), ("time.sleep(60)", False)],
    ids=["passes", "fails", "computes for ever", "waits for ever"],
)
def test_tests_that_do_not_end_count_as_failing(test, passes, tmp_path, monkeypatch):
    monkeypatch.setattr(mutating, "WAITING", 3)
    (tmp_path / "test_one.py").write_text(f"import time\ndef test_one():\n    {test}\n")
    code, took = mutating._run(Selection(("test_one.py",)), tmp_path, 2, ["-x"])
    assert (code == 0) is passes and 0 < took < 4


def test_functions_know_the_tests_that_call_them(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "plus.py").write_text("def plus(a):\n    return a + 1\n\n\ndef no():\n    pass\n")
    (tmp_path / "test_plus.py").write_text(
        "import threading\nfrom plus import plus\n"
        "def test_here(): plus(1)\n"
        "def test_there(): thread = threading.Thread(target=plus, args=(1,)); thread.start(); thread.join()\n"
        "def test_other(): assert False\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    noting = ["-p", "tools.calls", "--calls", str(tmp_path / "calls.json")]
    program = [sys.executable, "-m", "pytest", "-q", *noting]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path / 'src'}"}
    subprocess.run(program, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    told = json.loads((tmp_path / "calls.json").read_text())
    assert {name: set(tests) for name, tests in told["callers"].items()} == {
        "src/plus.py:1": {"test_plus.py::test_here", "test_plus.py::test_there"}
    }
    assert told["failed"] == ["test_plus.py::test_other"]


def test_every_mutant_differs_in_one_place_and_is_python(tmp_path: Path, monkeypatch):
    path = tmp_path / "source.py"
    path.write_text(
        "def f(x: int = 3, *, é=True) -> int:\n"
        "    return x + 1 if x < 2 and é else [*zip([], [], strict=True)]\n"
        "@op(samples=lambda: 5)\ndef g(): return 7 // 2\n"
        "def h(): return [S(T(3, 4), 5)] + [S(T(size), 2) for size in (3, 4)]\n"
        "SQUARE = [Matrices(3, 3), T(0, 0)]\n"
    )
    changed = [each.text() for each in mutants(path)]
    assert len(changed) == len(set(changed)) == 11
    for text in changed:
        ast.parse(text)
        assert len(text) - len(path.read_text()) in range(-2, 3)
    assert sum("x - 1" in text for text in changed) == 1
    assert all("strict=True" in text and "lambda: 5" in text and "-> int" in text for text in changed)
