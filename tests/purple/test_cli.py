"""The command `purple`, as a process: what it prints, where, and its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenfold.base.errors import MissingEngine
from tenfold.purple import cli


def purple(
    *arguments: str, text: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TENFOLD_CACHE_DIR": ""}
    command = [sys.executable, "-m", "tenfold.purple", *arguments]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, env=environment, cwd=cwd, timeout=120
    )


def test_a_file_runs_with_its_arguments(tmp_path):
    (tmp_path / "hello.purple").write_text('(print "hello" (command-line))\n5\n')
    found = purple("hello.purple", "a", "--b", cwd=tmp_path)
    assert (found.stdout, found.stderr, found.returncode) == ("hello (a --b)\n", "", 0)


@pytest.mark.parametrize("command", [(), ("build",), ("flags",), ("test",), ("fmt",), ("memory",)], ids=str)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit):
        cli.main([*command, "--help"])
    assert "example:\n  " in capsys.readouterr().out


def test_an_expression_prints_its_value():
    assert purple("-e", '(map 1+ (list 1 2)) (string-append "a" "b")').stdout == '"ab"\n'
    assert purple("-e", "(define x 1)").stdout == ""


def test_an_error_goes_to_the_error_output_with_status_1(tmp_path):
    (tmp_path / "bad.purple").write_text("(define (f x)\n  (car x))\n(print 1)\n(f 5)\n")
    found = purple("bad.purple", cwd=tmp_path)
    assert found.stdout == "1\n"
    assert found.returncode == 1
    assert found.stderr == (
        "bad.purple:2:3: error: car: expected a pair, got 5\n  "
        "  (car x))\n    ^^^^^^^\n  in (f …) at bad.purple:4:1\n"
    )


def test_a_missing_file_is_an_error():
    found = purple("no-such-file.purple")
    assert (found.stderr, found.returncode) == (
        "error: cannot read no-such-file.purple: no such file or directory\n",
        1,
    )


def test_exit_ends_with_its_status():
    found = purple("-e", '(begin (display "x") (exit 3))')
    assert (found.stdout, found.returncode) == ("x", 3)


def test_a_wrong_command_line_has_status_2():
    assert purple("--nonsense").returncode == 2
    assert "purple build FILE" in purple("--help").stdout
    assert purple("--version").stdout.startswith("purple ")


def test_lines_of_the_input_are_answered_without_a_terminal():
    found = purple(text="(define (f x)\n  (* x 2))\n(f 21)\n(car 1)\n,doc car\n,quit\n(f 1)\n")
    assert found.stdout == "42\n<2>:1:1: error: car: expected a pair, got 1\n".replace("<2>", "<3>") + (
        "  (car 1)\n  ^^^^^^^\n(car pair) → any\n  The first of a pair.\n"
    )
    assert found.returncode == 0


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m tenfold.purple -e '(dotimes (i 100000) (print i))' | head -1"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert (found.stdout, found.stderr) == ("0\n", "")


@pytest.mark.parametrize("command", [["-c"], ["memory"], ["build"]])
def test_commands_of_the_compiler_locate_errors_too(command, tmp_path):
    (tmp_path / "bad.purple").write_text("(print (lenght 1))\n")
    found = purple(*command, "bad.purple", cwd=tmp_path)
    assert found.returncode == 1
    assert found.stderr.startswith("bad.purple:1:9: error: lenght is not defined\n  (print (lenght 1))\n")


def test_a_program_is_printed_as_c(tmp_path):
    (tmp_path / "p.purple").write_text("(define (twice x) (* 2 x))\n(print (twice 21))\n")
    found = purple("-c", "p.purple", cwd=tmp_path)
    assert found.returncode == 0
    assert "twice" in found.stdout and "int main" in found.stdout


def test_checks_are_counted_and_failures_told(tmp_path):
    (tmp_path / "good.purple").write_text(
        "(check-equal? (+ 1 2) 3)\n(check-error (car 5) 'type)\n(check-true 1)\n"
    )
    (tmp_path / "bad.purple").write_text(
        "(check-equal? (list 1) (list 2))\n(check-error (+ 1 2))\n"
        '(check-error (error "a") "b")\n(check-true #t)\n'
    )
    found = purple("test", "good.purple", cwd=tmp_path)
    assert (found.stdout, found.returncode) == ("good.purple: 3 checks passed\n", 0)
    found = purple("test", "good.purple", "bad.purple", cwd=tmp_path)
    assert found.stdout.splitlines()[1] == "bad.purple: 3 of 4 checks failed" and found.returncode == 1
    assert "check failed: (list 1): expected (2), got (1)" in found.stderr


def test_a_file_of_checks_that_stops_has_failed(tmp_path):
    (tmp_path / "stops.purple").write_text("(check-true #t)\n(car 5)\n")
    found = purple("test", "stops.purple", cwd=tmp_path)
    assert "car: expected a pair, got 5" in found.stdout and found.returncode == 1
    assert "stops.purple: stopped after 1 checks, 0 of them failed" in found.stdout


def test_a_package_that_is_missing_is_no_internal_error(capsys):
    def build() -> int:
        raise MissingEngine("libtenfold is built against libtorch", help="pip install torch==2.13.0")

    assert cli._reported(build, {}) == 1
    assert capsys.readouterr().err == (
        "error: libtenfold is built against libtorch\n  help: pip install torch==2.13.0\n"
    )


@pytest.mark.parametrize(("arguments", "freezes"), [(("build", "a.purple"), True), (("a.purple",), False)])
def test_only_a_process_that_ran_no_program_ends_without_a_search_for_garbage(
    arguments: tuple[str, ...], freezes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(sys, "argv", ["purple", *arguments])
    monkeypatch.setattr(cli, "main", lambda: 3)
    monkeypatch.setattr(cli.gc, "freeze", lambda: frozen.append(True))
    assert cli.command() == 3
    assert frozen == [True] * freezes
