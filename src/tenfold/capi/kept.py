"""What the cache of built libraries keeps: the builds used last, and compiled objects up to a size. Nothing
is removed that was used within the hour, so another process may go on building meanwhile."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["BUILDS", "OBJECT_BYTES", "tidy"]

BUILDS = 8
OBJECT_BYTES = 256 << 20
_HOUR = 3600.0


def tidy(cache: Path) -> None:
    """Remove what a cache keeps no longer. A build's time is that of its last use."""
    folders = [each for each in cache.iterdir() if each.is_dir() and each.name != "objects"]
    builds = _latest_first(each for each in folders if not each.name.startswith("building-"))
    unfinished = [each for each in folders if each.name.startswith("building-")]
    for folder in _old([*builds[BUILDS:], *unfinished]):
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
