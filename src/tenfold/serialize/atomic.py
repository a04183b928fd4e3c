"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A new file that takes the path's place when the block ends well; otherwise nothing has changed.

    What is written goes to a file beside it, to the disk, and then under the path in one step. A device or a
    pipe is written as it is: it cannot be replaced.
    """
    path = os.path.realpath(path)  # a link stays, and what it leads to is replaced
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name[:200]}.{os.urandom(6).hex()}.part")
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        with open(descriptor, "w+b") as file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
            os.fsync(descriptor)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Put the new name on the disk too, where the file system lets a folder be opened for that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
