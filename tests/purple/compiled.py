"""Running a program both ways: interpreted here, and compiled in a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from pathlib import Path

from tenfold.purple import ir
from tenfold.purple.build import build_program
from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.errors import PurpleError
from tenfold.purple.interpret import Session, expand_program

FILE = "test.purple"
# The sanitizer looks for C++'s throw when a program starts: before libtorch, which throws, is loaded.
CHECKED = ("-fsanitize=address", "-g", "-O0", "-DPURPLE_INJECT", "-Wl,--no-as-needed,-lstdc++")


def build(text: str, folder: Path, *options: str, compiler: str | None = None) -> str:
    """A native program of the text; not optimised unless an option says so."""
    program = str(folder / "program")
    flags = ("-Werror", *(options or ("-O0",)))
    build_program(expand_program(text, FILE), program, options=flags, compiler=compiler)
    return program


def run(
    program: str, *arguments: str, fail_at: str = "", **keywords: str
) -> subprocess.CompletedProcess[str]:
    # One thread: tests run side by side, and what they compute is small.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **({"PURPLE_FAIL_AT": fail_at} if fail_at else {})}
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=300,
        **keywords,
    )


def compiled(text: str, folder: Path, *options: str, compiler: str | None = None) -> str:
    """What a program prints, compiled; it must end well, with nothing left over."""
    done = run(build(text, folder, *options, compiler=compiler))
    assert done.returncode == 0, done.stderr
    assert "released" not in done.stderr
    return done.stdout


def interpreted(text: str) -> str:
    """What a program prints, interpreted."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(PurpleError):
        with_deep_stack(lambda: Session().run_text(text, FILE))
    return printed.getvalue()


def function_of(module: ir.Module, name: str) -> ir.Function:
    """The function of a compiled program whose name ends so."""
    return next(function for function in module.functions if function.name.endswith(name))


def check_failures(program: str, points: range) -> None:
    """Let a program that was built with `CHECKED` fail at each of these points: it ends in good order, and
    leaves nothing behind."""
    for point in points:
        failed = run(program, fail_at=str(point))
        assert failed.returncode in (0, 1), failed.stderr
        assert "ERROR" not in failed.stderr and "released" not in failed.stderr, failed.stderr
