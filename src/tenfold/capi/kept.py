"""What the cache of built libraries keeps: the builds used last, and compiled objects up to a size. Nothing
is removed that was used within the hour or is being built, so another process may go on meanwhile."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tenfold.base.errors import EngineError
from tenfold.capi.remembered import SUFFIX

__all__ = ["BUILDS", "OBJECT_BYTES", "STATES", "locked", "tidy", "unfinished"]

BUILDS = 8
STATES = 64  # of the sources, whose builds are remembered
OBJECT_BYTES = 256 << 20
_HOUR = 3600.0
_UNFINISHED = "building-"


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """One process makes a folder, and others that want the same one wait for it, or get a BlockingIOError."""
    path = folder.with_name(f"{folder.name}.lock")
    while True:
        with _opened(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _lies_at(file, path):  # not if it was removed before it was locked: others lock a new one
                yield
                return


def _opened(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "w", encoding="utf-8")
    except OSError as error:
        raise EngineError(
            f"built libraries cannot be kept in {path.parent}: {error.strerror}",
            help="set TENFOLD_CAPI_DIR to a folder that you may write to",
        ) from None


def unfinished(folder: Path) -> Path:
    """Where a folder is made, by who has it locked."""
    return folder.with_name(f"{_UNFINISHED}{folder.name}")


def tidy(cache: Path) -> None:
    """Remove what a cache keeps no longer. A build's time is that of its last use."""
    folders = [each for each in cache.iterdir() if each.is_dir() and each.name != "objects"]
    builds = _latest_first(each for each in folders if not each.name.startswith(_UNFINISHED))
    for folder, found in builds[BUILDS:]:
        if _is_old(found):
            shutil.rmtree(folder, ignore_errors=True)
    for folder in folders:
        if folder.name.startswith(_UNFINISHED):
            with (
                suppress(BlockingIOError),
                locked(folder.with_name(folder.name.removeprefix(_UNFINISHED)), wait=False),
            ):
                shutil.rmtree(folder, ignore_errors=True)
    for lock, found in _latest_first(cache.glob("*.lock")):
        folder = lock.with_suffix("")
        if _is_old(found) and not folder.exists():
            with suppress(BlockingIOError), locked(folder, wait=False):
                lock.unlink(missing_ok=True)
    for known, found in _latest_first(cache.glob(f"*{SUFFIX}"))[STATES:]:
        if _is_old(found):
            known.unlink(missing_ok=True)
    held = 0
    for kept, found in _latest_first((cache / "objects").glob("*.o")):
        held += found.st_size
        if held > OBJECT_BYTES and _is_old(found):
            kept.unlink(missing_ok=True)


def _latest_first(paths: Iterable[Path]) -> list[tuple[Path, os.stat_result]]:
    """Those that are there, for another process may rename or remove some meanwhile."""
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            found.append((path, path.stat()))
    return sorted(found, key=lambda each: each[1].st_mtime, reverse=True)


def _is_old(found: os.stat_result) -> bool:
    return found.st_mtime < time.time() - _HOUR


def _lies_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
