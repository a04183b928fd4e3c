"""Executables on disk, so that a second process need not compile again.

One file for each program, named by a hash of its text and of all that the result depends on; written beside
and renamed, so that processes may share the folder; checked by a digest, so that damage is noticed. The least
recently used go when the folder outgrows its bound, and what a killed process left unfinished goes after an
hour. TENFOLD_CACHE_DIR names the folder (empty: no cache), TENFOLD_CACHE_BYTES the bound.
"""

from __future__ import annotations

import os
import time

from tenfold.base import warning
from tenfold.base.errors import CacheWarning

MAGIC = b"tenfold-executable-1\n"
SUFFIX = ".xla"
DEFAULT_BYTES = 1 << 30
UNFINISHED_SECONDS = 3600.0


def folder() -> str | None:
    named = os.environ.get("TENFOLD_CACHE_DIR")
    if named is not None:
        return named or None
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tenfold")


def key(*parts: str) -> str:
    return _digest("\0".join(parts).encode()).hex()


def _digest(data: bytes) -> bytes:
    import hashlib  # with OpenSSL behind it, too much for `import tenfold`

    return hashlib.sha256(data).digest()


def load(name: str) -> bytes | None:
    """What was stored under this name, or None; a damaged file is removed with a warning."""
    where = folder()
    if where is None:
        return None
    path = os.path.join(where, name + SUFFIX)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        warn(f"cannot read {path}: {error.strerror}")
        return None
    header = len(MAGIC) + 32
    payload = data[header:]
    if not data.startswith(MAGIC) or _digest(payload) != data[len(MAGIC) : header]:
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
    path = os.path.join(where, name + SUFFIX)
    unfinished = f"{path}.{os.getpid()}"
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        with open(unfinished, "wb") as file:
            file.write(MAGIC + _digest(payload) + payload)
        os.replace(unfinished, path)
        _trim(where)
    except OSError as error:
        _remove(unfinished)
        warn(f"cannot write to {where}: {error.strerror}")


def discard(name: str, why: str) -> None:
    where = folder()
    if where is not None:
        path = os.path.join(where, name + SUFFIX)
        warn(f"ignoring {path}: {why}")
        _remove(path)


def _trim(where: str) -> None:
    files = []
    for entry in os.scandir(where):
        name, _, writer = entry.name.rpartition(".")
        unfinished = name.endswith(SUFFIX) and writer.isdecimal()
        if not unfinished and not entry.name.endswith(SUFFIX):
            continue
        try:
            found = entry.stat()
        except FileNotFoundError:
            continue  # another process trimmed it first
        if not unfinished:
            files.append((found.st_mtime, found.st_size, entry.path))
        elif found.st_mtime < time.time() - UNFINISHED_SECONDS:
            _remove(entry.path)  # its writer was killed: writing takes moments
    bound = _bound()
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= bound:
            break
        _remove(path)
        total -= size


def _bound() -> int:
    named = os.environ.get("TENFOLD_CACHE_BYTES", "")
    if named and not named.isdecimal():
        warn(f"TENFOLD_CACHE_BYTES is a number of bytes, not {named!r}")
        return DEFAULT_BYTES
    return int(named or DEFAULT_BYTES)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # it is gone already, or the folder is not ours to change


def warn(message: str) -> None:
    help = "results are unaffected; TENFOLD_CACHE_DIR names another folder, or, empty, switches the cache off"
    warning.warn(f"compilation cache: {message}\n  help: {help}", CacheWarning)
