"""A Python file run as a program by the command line."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from types import TracebackType
from typing import Any

from tenfold.base.errors import ArgumentError, TenfoldError


def execute(path: str, name: str = "__main__") -> tuple[int, dict[str, Any]]:
    """Run a file as a program: its exit status, and the names that it leaves behind. An error is printed with
    the user's frames; one of ours, with those alone."""
    if os.path.isdir(path):
        raise ArgumentError(f"{path} is a folder", help="give the path of a Python file")
    if not os.path.isfile(path):
        raise ArgumentError(f"there is no file {path}", help="give the path of a Python file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        return 0, runpy.run_path(path, run_name=name)
    except SystemExit as left:
        inside = _inside(left.__traceback__, path)
        return _status(left.code), inside.tb_frame.f_globals if inside else {}
    except SyntaxError as error:
        print("".join(traceback.format_exception_only(error)), end="", file=sys.stderr)
    except TenfoldError as error:
        print("\n".join(error._render_traceback_()), file=sys.stderr)
    except BrokenPipeError:
        raise
    except Exception as error:
        traceback.print_exception(error.with_traceback(_inside(error.__traceback__, path)))
        if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == "torch":
            print("  help: with --as-torch, `import torch` means Tenfold", file=sys.stderr)
    return 1, {}


def _inside(trace: TracebackType | None, path: str) -> TracebackType | None:
    """The part of a traceback that begins in the file."""
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace


def _status(code: Any) -> int:
    """The exit status that Python gives for the code of a SystemExit, which it prints if it is text."""
    if code is None or isinstance(code, int):
        return int(code or 0) & 255
    print(code, file=sys.stderr)
    return 1
