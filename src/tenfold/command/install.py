"""The command `tenfold capi install`: libtenfold, libtenfold_rt and libpurple in a prefix."""

from __future__ import annotations

import argparse
import os
from typing import Any

from tenfold.base.terminal import console
from tenfold.capi.commands import built_with_a_bar
from tenfold.capi.install import LIBTENFOLD, install

__all__ = ["add_install"]


def add_install(commands: Any) -> None:
    """Add the command to those of `tenfold capi`."""
    summary = "Copy libtenfold, libtenfold_rt and libpurple to a prefix."
    parser = commands.add_parser("install", help=summary, description=summary)
    parser.set_defaults(command=_install)
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
    known = ", ".join(each.name for each in packages)
    console.print(f"{root}: pkg-config knows {known}; CMake finds Tenfold")
    return 0
