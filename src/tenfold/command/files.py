"""A Python file run as a program by the command line."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from typing import Any

from tenfold.base.errors import ArgumentError, TenfoldError


def execute(path: str, name: str = "__main__") -> tuple[int, dict[str, Any]]:
    """Run a file as a program. An error of ours is printed with the user's frames alone."""
    if os.path.isdir(path):
        raise ArgumentError(f"{path} is a folder", help="give the path of a Python file")
    if not os.path.isfile(path):
        raise ArgumentError(f"there is no file {path}", help="give the path of a Python file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        return 0, runpy.run_path(path, run_name=name)
    except SyntaxError as error:
        print("".join(traceback.format_exception_only(error)), end="", file=sys.stderr)
        return 1, {}
    except TenfoldError as error:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if not frame.filename.startswith((package, "<frozen"))
        ]
        print("".join(traceback.format_list(frames)), end="", file=sys.stderr)
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1, {}
