"""The command `tenfold capi install`: libtenfold, libtenfold_rt and libpurple in a prefix."""

from __future__ import annotations

import argparse
import os

from tenfold.base.subcommands import Command
from tenfold.base.terminal import console
from tenfold.capi.commands import built_with_a_bar
from tenfold.capi.install import LIBTENFOLD, install

__all__ = ["add_install"]


def add_install(command: Command) -> None:
    """Add the command to those of `tenfold capi`."""
    parser = command(
        "install",
        _install,
        "Copy libtenfold, libtenfold_rt and libpurple to a prefix.",
        "tenfold capi install --prefix /opt/tenfold",
    )
    parser.add_argument("--prefix", default="/usr/local", metavar="DIR", help="default: /usr/local")
    parser.add_argument(
        "--destdir",
        metavar="DIR",
        help="a folder that stands for the root, where packages are made (default: $DESTDIR)",
    )


def _install(parsed: argparse.Namespace) -> int:
    from tenfold.purple.library import LIBPURPLE, add_library  # slow to import, and for this command alone

    built = built_with_a_bar()
    add_library(built)
    packages = (*LIBTENFOLD, LIBPURPLE)
    destdir = os.environ.get("DESTDIR", "") if parsed.destdir is None else parsed.destdir
    root = install(built, packages, parsed.prefix, destdir)
    known = ", ".join(package.name for package in packages)
    console.print(f"{root}: pkg-config knows {known}; CMake finds Tenfold")
    return 0
