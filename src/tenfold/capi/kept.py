"""What the cache of built libraries keeps: the builds used last, and compiled objects up to a size. Nothing
is removed that was used within the hour or is being built, so another process may go on meanwhile."""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["BUILDS", "OBJECT_BYTES", "locked", "tidy", "unfinished"]

BUILDS = 8
OBJECT_BYTES = 256 << 20
_HOUR = 3600.0
_UNFINISHED = "building-"


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """One process makes a folder, and others that want the same one wait for it, or get a BlockingIOError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def unfinished(folder: Path) -> Path:
    """Where a folder is made, by who has it locked."""
    return folder.with_name(f"{_UNFINISHED}{folder.name}")


def tidy(cache: Path) -> None:
    """Remove what a cache keeps no longer. A build's time is that of its last use."""
    folders = [each for each in cache.iterdir() if each.is_dir() and each.name != "objects"]
    builds = _latest_first(each for each in folders if not each.name.startswith(_UNFINISHED))
    for folder in _old(builds[BUILDS:]):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in folders:
        if folder.name.startswith(_UNFINISHED):
            with (
                suppress(BlockingIOError),
                locked(folder.with_name(folder.name.removeprefix(_UNFINISHED)), wait=False),
            ):
                shutil.rmtree(folder, ignore_errors=True)
    for lock in _old(cache.glob("*.lock")):
        if not lock.with_suffix("").exists():
            lock.unlink(missing_ok=True)
    held = 0
    for kept in _latest_first((cache / "objects").glob("*.o")):
        held += kept.stat().st_size
        if held > OBJECT_BYTES and _old([kept]):
            kept.unlink(missing_ok=True)


def _latest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)


def _old(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.stat().st_mtime < time.time() - _HOUR]
