"""The names under which shared libraries lie on a disk and are recorded in the programs that link them."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["INTERFACE", "link_names", "soname"]

INTERFACE = "0"  # a program runs with every libtenfold of the interface that it was linked with


def soname(name: str) -> str:
    """What a program that links a library looks for when it starts: libtenfold.so.0 for libtenfold."""
    return f"{name}.so.{INTERFACE}"


def link_names(library: Path) -> None:
    """The shorter names of a library as links to it: libtenfold.so to libtenfold.so.0."""
    stem, _, version = library.name.partition(".so.")
    numbers = version.split(".")
    for count in range(len(numbers)):
        name = ".".join([f"{stem}.so", *numbers[:count]])
        unfinished = library.with_name(f"{name}.{os.getpid()}")
        unfinished.unlink(missing_ok=True)
        unfinished.symlink_to(library.name)
        try:
            unfinished.rename(library.with_name(name))
        except OSError:
            unfinished.unlink()
            raise
