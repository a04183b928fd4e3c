"""Executables on disk, so that a second process need not compile again.

One file for each program, named by a hash of its text and of all that the result depends on; written beside
and renamed, so that processes may share the folder. The least recently used go when the folder outgrows its
bound, and what a killed process left unfinished goes after an hour. TENFOLD_CACHE_DIR names the folder
(empty: no cache), TENFOLD_CACHE_BYTES the bound.

Entries are machine code, so only this user's are loaded: the folder must be the user's and writable by nobody
else, and each entry carries a code made from its name, its contents and a secret that lies in the folder and
only the user may read. TENFOLD_CACHE_GROUP=1 trusts the folder's group, too: its members share the secret.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator

from tenfold.base import digests, folders, warning
from tenfold.base.errors import CacheWarning

MAGIC = b"tenfold-executable-2\n"
SUFFIX = ".xla"
SECRET = "secret"
CODE_BYTES = 32
DEFAULT_BYTES = 1 << 30
UNFINISHED_SECONDS = 3600.0
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in the place of a file would wait for a writer
_unusable: set[tuple[str, str]] = set()  # folders, and why: said once


def folder() -> str | None:
    named = os.environ.get("TENFOLD_CACHE_DIR")
    return folders.user_cache() if named is None else named or None


def key(*parts: str) -> str:
    return digests.sha256("\0".join(parts).encode()).hex()


def load(name: str) -> bytes | None:
    """What this user stored under this name, or None; anything else found there is removed with a warning."""
    with _opened() as place:
        if place is None:
            return None
        try:
            data = _read(place, name + SUFFIX)
            secret = _secret(place)
        except FileNotFoundError:
            return None
        except _NotOurs as error:
            discard(name, str(error))
            return None
        except OSError as error:
            warn(f"cannot read {_path(name)}: {error.strerror}")
            return None
        header = len(MAGIC) + CODE_BYTES
        payload = data[header:]
        if not data.startswith(MAGIC) or not _equal(_code(secret, name, payload), data[len(MAGIC) : header]):
            discard(name, "it is damaged, or this user did not write it")
            return None
        with contextlib.suppress(OSError):  # read-only folder: its order of use is not ours to keep
            os.utime(name + SUFFIX, dir_fd=place)
        return payload


def store(name: str, payload: bytes) -> None:
    """Keep a program on disk, with a code that tells whether it is as it was written."""
    where = folder()
    if where is None:
        return
    try:
        folders.make(where)
        with _opened() as place:
            if place is not None:
                code = _code(_secret(place, make=True), name, payload)
                _write(place, name + SUFFIX, MAGIC + code + payload)
                _trim(place)
    except OSError as error:
        warn(f"cannot write to {where}: {error.strerror or error}")


def discard(name: str, why: str) -> None:
    where = folder()
    if where is not None:
        warn(f"ignoring {_path(name)}: {why}")
        with _opened() as place:
            if place is not None:
                _remove(place, name + SUFFIX)


class _NotOurs(OSError):
    """A file that is none, or that another user wrote."""


@contextlib.contextmanager
def _opened() -> Iterator[int | None]:
    """The folder, opened: what is done by its descriptor is done in the folder that was looked at. None if it
    cannot be opened, or if others could have written to it."""
    where = folder()
    descriptor = None
    if where is not None:
        try:
            descriptor = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            pass  # `store` makes it
        except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
            _say_once(where, getattr(error, "strerror", None) or str(error))
    if descriptor is None:
        yield None
        return
    try:
        why = folders.why_shared(os.fstat(descriptor), _trusts_group())
        if why is not None:
            _say_once(str(where), why)
        yield descriptor if why is None else None
    finally:
        os.close(descriptor)


def _say_once(where: str, why: str) -> None:
    if (where, why) not in _unusable:
        _unusable.add((where, why))
        warn(f"{where} is not used: {why}")


def _trusts_group() -> bool:
    return os.environ.get("TENFOLD_CACHE_GROUP", "") not in ("", "0")


def _path(name: str) -> str:
    return os.path.join(folder() or "", name + SUFFIX)


def _read(place: int, name: str) -> bytes:
    """A regular file that nobody else could write."""
    try:
        descriptor = os.open(name, os.O_RDONLY | _OPEN, dir_fd=place)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
            raise _NotOurs("it is no regular file") from None
        raise
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        why = folders.why_shared(facts, _trusts_group())
        if not stat.S_ISREG(facts.st_mode):
            raise _NotOurs("it is no regular file")
        if why is not None:
            raise _NotOurs(why)
        if facts.st_size > max(_bound(), DEFAULT_BYTES):
            raise _NotOurs("it is larger than the whole cache may be")
        return file.read()


def _write(place: int, name: str, data: bytes, replace: bool = True) -> None:
    """A new file, whole or not at all, that only the user may read; with a trusted group, its members too."""
    unfinished = f"{name}.{int.from_bytes(os.urandom(6), 'big')}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN
    descriptor = os.open(unfinished, flags, 0o600, dir_fd=place)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            if _trusts_group():
                os.fchown(descriptor, -1, os.fstat(place).st_gid)
                os.fchmod(descriptor, 0o640)
        if replace:
            os.replace(unfinished, name, src_dir_fd=place, dst_dir_fd=place)
        else:
            os.link(unfinished, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
            os.unlink(unfinished, dir_fd=place)
    except BaseException:
        _remove(place, unfinished)
        raise


def _secret(place: int, make: bool = False) -> bytes:
    """The secret by which entries are known as this user's; the first process to store one makes it."""
    try:
        return _read(place, SECRET)
    except _NotOurs:
        _remove(place, SECRET)
    except FileNotFoundError:
        if not make:
            raise
    if not make:
        raise FileNotFoundError(errno.ENOENT, "no secret")
    with contextlib.suppress(FileExistsError):  # another process was first
        _write(place, SECRET, os.urandom(32), replace=False)
    return _read(place, SECRET)


def _code(secret: bytes, name: str, payload: bytes) -> bytes:
    import hmac

    return hmac.digest(secret, name.encode() + b"\0" + payload, "sha256")


def _equal(one: bytes, other: bytes) -> bool:
    import hmac

    return hmac.compare_digest(one, other)


def _trim(place: int) -> None:
    files = []
    for entry in os.scandir(place):
        name, _, writer = entry.name.rpartition(".")
        unfinished = name.endswith((SUFFIX, SECRET)) and writer.isdecimal()
        if not unfinished and not entry.name.endswith(SUFFIX):
            continue
        try:
            facts = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # another process trimmed it first
        if not unfinished:
            files.append((facts.st_mtime, facts.st_size, entry.name))
        elif facts.st_mtime < time.time() - UNFINISHED_SECONDS:
            _remove(place, entry.name)  # its writer was killed: writing takes moments
    bound = _bound()
    total = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if total <= bound:
            break
        _remove(place, name)
        total -= size


def _bound() -> int:
    named = os.environ.get("TENFOLD_CACHE_BYTES", "")
    if named and not named.isdecimal():
        warn(f"TENFOLD_CACHE_BYTES is a number of bytes, not {named!r}")
        return DEFAULT_BYTES
    return int(named or DEFAULT_BYTES)


def _remove(place: int, name: str) -> None:
    with contextlib.suppress(OSError):  # it is gone already, or the folder is not ours to change
        os.unlink(name, dir_fd=place)


def warn(message: str) -> None:
    help = "results are unaffected; TENFOLD_CACHE_DIR names another folder, or, empty, switches the cache off"
    warning.warn(f"compilation cache: {message}\n  help: {help}", CacheWarning)
