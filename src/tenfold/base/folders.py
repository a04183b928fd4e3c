"""Folders that hold code: where the user's cache is, and whether others could have written to one."""

from __future__ import annotations

import errno
import os
import stat


def user_cache() -> str | None:
    """Tenfold's folder in the user's cache; None where the user has no home. Relative paths do not count, as
    the XDG specification says."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return os.path.join(named, "tenfold")
    home = os.environ.get("HOME") or _registered_home()
    if not os.path.isabs(home) or os.path.normpath(home) == "/":
        return None
    return os.path.join(home, ".cache", "tenfold")


def _registered_home() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user of a container's, whom nobody registered
        return ""


def make(path: str) -> None:
    """Make a folder, and what it lies in, for this user alone."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:  # another process was first, or a file is in the way
            if not os.path.isdir(each):
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", each) from None


def why_shared(found: os.stat_result, group: bool = False, owners: tuple[int, ...] = ()) -> str | None:
    """Why code in a folder, or in a file, may be someone else's; None if it is the user's own. With `group`,
    the other members of its group are trusted; `owners` are trusted, too."""
    if found.st_uid not in (os.geteuid(), *owners) and not (group and _is_member(found.st_gid)):
        return f"it belongs to another user ({found.st_uid})"
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not group):
        return "others may write to it"
    return None


def _is_member(group: int) -> bool:
    return group == os.getegid() or group in os.getgroups()
