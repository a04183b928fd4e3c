"""Which build the sources have as they are now, remembered by how their files look: to generate libtenfold's
sources for the sake of their hash takes a third of a second, which every Purple program with tensors would
pay.

A file's look is its size, its times and its inode, of the whole package and of libtorch's declarations. Rows
of users' packages lie elsewhere, so with such rows nothing is remembered."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tenfold.base import loading
from tenfold.capi.locate import Libtorch
from tenfold.ops.table import TABLE

__all__ = ["SUFFIX", "State", "recall", "remember", "state_of"]

PACKAGE = Path(__file__).parents[1]
SUFFIX = ".build"
_NAME = re.compile(r"[\w.+]+-[0-9a-f]+")
_SETTLED = 1.0  # seconds: file systems and the clock may differ by a little


@dataclass(frozen=True)
class State:
    """The hash of all that a build is made from. `certain` is false where this process may run older code
    than the files hold: what it finds out is then not remembered."""

    digest: str
    certain: bool


def state_of(libtorch: Libtorch, *settings: str) -> State | None:
    """None where a build depends on more than files: rows that the user declared."""
    if not all(row.is_own for rows in TABLE.values() for row in rows):
        return None
    try:
        return _state_of(libtorch, settings)
    except OSError:  # a file went while we looked
        return None


def _state_of(libtorch: Libtorch, settings: Sequence[str]) -> State:
    digest = hashlib.sha256("\0".join([str(PACKAGE), str(libtorch.folder), *settings]).encode())
    newest = 0.0
    for path, found in _looks(str(PACKAGE)):
        digest.update(_look(path, found))
        newest = max(newest, found.st_ctime, found.st_mtime)
    for path, found in _declarations(libtorch):
        digest.update(_look(path, found))
    return State(digest.hexdigest(), newest < loading.BEGAN - _SETTLED)


def recall(cache: Path, state: State | None) -> str | None:
    """The name of the build that this state has, if that is known and the build is there."""
    if state is not None:
        with suppress(OSError):
            name = (cache / f"{state.digest}{SUFFIX}").read_text(encoding="utf-8")
            if _NAME.fullmatch(name) and (cache / name / "lib/libtenfold.so").exists():
                return name
    return None


def remember(cache: Path, state: State | None, name: str) -> None:
    if state is None or not state.certain:
        return
    unfinished = cache / f"{state.digest}.{os.getpid()}"
    with suppress(OSError):  # a cache that is only read
        unfinished.write_text(name, encoding="utf-8")
        unfinished.rename(cache / f"{state.digest}{SUFFIX}")


def _look(path: str, found: os.stat_result) -> bytes:
    facts = (path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return repr(facts).encode()


def _looks(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder, in an order of their own."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _looks(entry.path)
        else:
            yield entry.path, entry.stat()


def _declarations(libtorch: Libtorch) -> Iterator[tuple[str, os.stat_result]]:
    version = libtorch.folder / "version.py"
    yield str(version), version.stat()
    for entry in sorted(os.scandir(libtorch.folder / "include/ATen/ops"), key=lambda entry: entry.name):
        if entry.name.endswith("_ops.h"):
            yield entry.path, entry.stat()
