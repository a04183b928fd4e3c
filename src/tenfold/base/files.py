"""Files that others may have put in place are opened if they are regular files: a pipe would wait for a
writer, and a device may never end."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

from tenfold.base.errors import ArgumentError, FormatError


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, to be read; an `OSError` for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))


def contents(path: str | os.PathLike[str], what: str) -> bytes:
    """All of a file that a user named; `what` says which kind is meant."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"takes a path or the bytes of a file, not {type(path).__name__}")
    try:
        with opened(path) as file:
            return file.read()
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        raise FormatError(
            f"{os.fspath(path)} cannot be read: {getattr(error, 'strerror', None) or error}",
            help=f"give the path of a {what}",
        ) from None
