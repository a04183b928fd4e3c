"""Compilers end with the build that runs them, and nothing of a build that was stopped is left."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tenfold.base.errors import ArgumentError, EngineError, MissingEngine
from tenfold.capi import kept
from tenfold.capi.build import build
from tenfold.capi.commands import built_with_a_bar
from tenfold.capi.compilers import Running, version_of


def wait_until(done: Callable[[], bool]) -> None:
    for _ in range(600):
        if done():
            return
        time.sleep(0.1)
    raise AssertionError("that did not come about")


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def compiler_that_never_ends(folder: Path) -> Path:
    """It says which processes it has in the file `pids`, of its own and of one that it started."""
    script = folder / "compiler"
    lines = [
        "#!/bin/sh",
        '[ "$1" = --version ] && echo compiler && exit',
        "sleep 600 &",
        f"echo $$ $! >> {folder}/pids",
        "wait",
    ]
    script.write_text("\n".join(lines), encoding="utf-8")
    script.chmod(0o755)
    return script


def pids(folder: Path) -> list[int]:
    return [int(each) for each in (folder / "pids").read_text(encoding="utf-8").split()]


def test_compilers_are_stopped_with_what_they_started(tmp_path: Path) -> None:
    running, failures = Running(), []

    def compile_one() -> None:
        try:
            running.run([str(compiler_that_never_ends(tmp_path))], "compiling one")
        except EngineError as error:
            failures.append(error)

    thread = threading.Thread(target=compile_one)
    thread.start()
    wait_until((tmp_path / "pids").exists)
    running.stop()
    thread.join()
    assert "compiling one failed" in str(failures[0])
    wait_until(lambda: not any(map(lives, pids(tmp_path))))
    with pytest.raises(EngineError, match="given up"):
        running.run(["true"], "compiling another")


def stop_a_build(folder: Path, number: signal.Signals, *, heeded: bool = True) -> None:
    """By a signal, while it compiles into the folder `cache`. None of its compilers goes on."""
    script = str(compiler_that_never_ends(folder))
    environment = {**os.environ, "TENFOLD_CAPI_DIR": str(folder / "cache"), "CC": script, "CXX": script}
    # Also where a shell's job ignores it.
    heed = functools.partial(signal.signal, number, signal.SIG_DFL) if heeded else None
    command = [sys.executable, "-m", "tenfold", "capi", "build"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, preexec_fn=heed) as build:
        wait_until((folder / "pids").exists)
        build.send_signal(number)
        try:
            assert build.wait(timeout=60) != 0
        finally:
            build.kill()
    wait_until(lambda: not any(map(lives, pids(folder))))


def test_a_build_leaves_the_handlers_of_signals_as_they_were() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)
    built_with_a_bar()
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_build_that_is_stopped_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    stop_a_build(tmp_path, number)
    cache = tmp_path / "cache"
    assert [each.name for each in cache.iterdir() if each.suffix != ".lock"] == ["objects"]
    assert list((cache / "objects").iterdir()) == []


def test_compilers_end_with_a_build_that_is_killed(tmp_path: Path) -> None:
    stop_a_build(tmp_path, signal.SIGKILL, heeded=False)  # nobody can ignore that one


def test_what_a_killed_build_left_is_removed_and_one_that_runs_is_not(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    for name in ("killed", "running"):
        kept.unfinished(tmp_path / name).mkdir()
    with kept.locked(tmp_path / "running"):
        kept.tidy(tmp_path)
    assert not kept.unfinished(tmp_path / "killed").exists()
    assert kept.unfinished(tmp_path / "running").exists()


def test_what_is_no_compiler_is_told_of(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch(0o755)
    for wrong in ("/bin/false", str(empty)):
        with pytest.raises(MissingEngine, match=f"{wrong} is no compiler"):
            version_of(wrong)


def test_no_compilers_at_a_time_are_an_error() -> None:
    with pytest.raises(ArgumentError, match="0 compilers"):
        build(jobs=0)
