"""Executables on disk, so that a second process need not compile again.

One file for each program, named by a hash of its text and of all that the result depends on; written beside
and renamed, so that processes may share the folder; checked by a digest, so that damage is noticed; the least
recently used go when the folder outgrows its bound. TENFOLD_CACHE_DIR names the folder (empty: no cache),
TENFOLD_CACHE_BYTES the bound.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from pathlib import Path

from tenfold.errors import CacheWarning

MAGIC = b"tenfold-executable-1\n"
SUFFIX = ".xla"
DEFAULT_BYTES = 1 << 30


def folder() -> Path | None:
    named = os.environ.get("TENFOLD_CACHE_DIR")
    if named == "":
        return None
    if named is not None:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tenfold"


def key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """What was stored under this name, or None; a damaged file is removed with a warning."""
    where = folder()
    if where is None:
        return None
    path = where / (name + SUFFIX)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(f"cannot read {path}: {error.strerror}")
        return None
    header = len(MAGIC) + 32
    payload = data[header:]
    if not data.startswith(MAGIC) or hashlib.sha256(payload).digest() != data[len(MAGIC) : header]:
        discard(name, "it is damaged")
        return None
    try:
        os.utime(path)
    except OSError:
        return payload  # read-only folder: its order of use is not ours to keep
    return payload


def store(name: str, payload: bytes) -> None:
    where = folder()
    if where is None:
        return
    temporary = None
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=where)
        with os.fdopen(descriptor, "wb") as file:
            file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, where / (name + SUFFIX))
        _trim(where)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        _warn(f"cannot write to {where}: {error.strerror}")


def discard(name: str, why: str) -> None:
    where = folder()
    if where is not None:
        path = where / (name + SUFFIX)
        _warn(f"ignoring {path}: {why}")
        path.unlink(missing_ok=True)


def _trim(where: Path) -> None:
    bound = int(os.environ.get("TENFOLD_CACHE_BYTES", DEFAULT_BYTES))
    files = []
    for entry in os.scandir(where):
        if entry.name.endswith(SUFFIX):
            try:
                found = entry.stat()
            except FileNotFoundError:
                continue  # another process trimmed it first
            files.append((found.st_mtime, found.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= bound:
            break
        Path(path).unlink(missing_ok=True)
        total -= size


def _warn(message: str) -> None:
    warnings.warn(CacheWarning(f"compilation cache: {message}"), stacklevel=2)
