"""The cache of built libraries stays small."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from tenfold.base.errors import EngineError
from tenfold.capi import kept
from tenfold.capi.build import build
from tests.capi.bridge import built

HOUR = 3600


def aged(path: Path, hours: float) -> Path:
    then = time.time() - hours * HOUR
    os.utime(path, (then, then))
    return path


def test_the_builds_used_last_are_kept(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    for age in range(1, kept.BUILDS + 4):
        build = tmp_path / f"2.13.0-{age:02}"
        (build / "lib").mkdir(parents=True)
        build.with_name(f"{build.name}.lock").touch()
        aged(build, age + 0.5)
        aged(build.with_name(f"{build.name}.lock"), age + 0.5)
    kept.tidy(tmp_path)
    left = sorted(each.name for each in tmp_path.iterdir() if each.is_dir())
    assert left == [*(f"2.13.0-{age:02}" for age in range(1, kept.BUILDS + 1)), "objects"]
    assert len(list(tmp_path.glob("*.lock"))) == kept.BUILDS


def test_what_was_used_within_the_hour_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "BUILDS", 1)
    (tmp_path / "objects").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    kept.tidy(tmp_path)
    assert {"a", "b", "c"} <= {each.name for each in tmp_path.iterdir()}


def test_objects_are_kept_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "OBJECT_BYTES", 250)
    (tmp_path / "objects").mkdir()
    for age in range(2, 6):
        path = tmp_path / "objects" / f"{age}.o"
        path.write_bytes(b"x" * 100)
        aged(path, age)
    kept.tidy(tmp_path)
    assert sorted(each.name for each in (tmp_path / "objects").iterdir()) == ["2.o", "3.o"]


def test_what_another_build_renames_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = tmp_path / "objects"
    objects.mkdir()
    (objects / "there.o").touch()
    gone = [objects / "there.o", objects / "renamed.o"]
    monkeypatch.setattr(kept.Path, "glob", lambda folder, pattern: iter(gone if folder == objects else ()))
    kept.tidy(tmp_path)
    assert [each.name for each in objects.iterdir()] == ["there.o"]


def test_a_lock_that_is_held_stays_however_old(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    lock = tmp_path / "2.13.0-a.lock"
    with kept.locked(tmp_path / "2.13.0-a"):
        aged(lock, 2)
        kept.tidy(tmp_path)
        assert lock.exists()
    aged(lock, 2)
    kept.tidy(tmp_path)
    assert not lock.exists()


def test_who_waited_for_a_lock_that_was_removed_locks_the_new_one(tmp_path: Path) -> None:
    folder, entered = tmp_path / "2.13.0-a", threading.Event()

    def wait() -> None:
        with kept.locked(folder):
            entered.set()

    with kept.locked(folder):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not entered.wait(0.2)
        (tmp_path / "2.13.0-a.lock").unlink()
        second = kept.locked(folder)
        second.__enter__()
    assert not entered.wait(0.2)
    second.__exit__(None, None, None)
    waiting.join(60)
    assert entered.is_set()


def test_a_cache_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(EngineError, match="cannot be kept in .*file: (?s:.*)TENFOLD_CAPI_DIR"),
        kept.locked(tmp_path / "file" / "2.13.0"),
    ):
        pass


def test_a_build_in_a_cache_that_is_only_read_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    library = built().library
    monkeypatch.setattr(os, "utime", refuse)
    assert build().library == library
