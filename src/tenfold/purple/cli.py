"""The command `purple`: run a file or an expression, compile, build, show where memory is freed, or talk."""

from __future__ import annotations

import argparse
import gc
import io
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import tenfold
from tenfold.base.errors import MissingEngine
from tenfold.capi.build import build as build_libtenfold
from tenfold.purple import build as builder, core, emit_c, memory, repl
from tenfold.purple.cycles import Cycle
from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.errors import PurpleError, report, warning
from tenfold.purple.interpret import Session, expand_program
from tenfold.purple.layout import formatted
from tenfold.purple.library import flags as library_flags
from tenfold.purple.prims import control
from tenfold.purple.printing import write_text
from tenfold.purple.reader import read_source
from tenfold.purple.testing import run_tests
from tenfold.purple.values import UNSPECIFIED

USAGE = """\
purple FILE [ARGUMENT …]        run a program
purple -e EXPRESSION            print an expression's value
purple                          start the REPL, with history and completion
purple -c FILE                  print the program as C99
purple build FILE -o PROGRAM    make a native program (-g keeps source lines for gdb)
purple flags                    print the flags that compile and link the C of `purple -c`
purple memory FILE              print the program, with each place where memory is freed
purple memory FILE FILE …       compare how programs free their memory, in a table
purple test FILE …              run the checks in files, and count how many pass
purple fmt [--check] FILE …     format files, or list those that are not formatted
purple memory --run FILE        run the program, and compare its peak memory with the ideal"""


# Commands that run no program of the user's, whose objects would have to be finalized.
RUN_NOTHING = ("build", "flags", "fmt", "-c")
_FLAGS = "Print the flags that compile and link the C that `purple -c` prints."


def command() -> int:
    """`main` for a process of its own. Where it ran no program, Python's last search for garbage, which takes
    as long as a seventh of a build, is spared: the system frees all memory at once."""
    try:
        return main()
    finally:
        if sys.argv[1:2] and sys.argv[1] in RUN_NOTHING:
            gc.freeze()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 1 for an error of the program and 2 for a wrong command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # whatever the locale says, and whatever bytes an argument held
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    parsed = _parse(given)
    if parsed is None:
        return repl.main()
    try:
        return parsed()
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parse(given: list[str]) -> Callable[[], int] | None:
    """What the command line asks for; None for the REPL."""
    if given[:1] == ["build"]:
        parser = _parser("build", "Make a native program.", "purple build life.purple -o life")
        parser.add_argument("file")
        parser.add_argument("-o", "--output", help="the program to make (default: FILE without its ending)")
        parser.add_argument("-g", "--debug", action="store_true", help="keep source lines for gdb")
        parser.add_argument("--rpath", metavar="DIR", help="where the program finds an installed libtenfold")
        built = parser.parse_args(given[1:])
        output = built.output or str(Path(built.file).with_suffix(""))
        return lambda: _reported(lambda: _build(built.file, output, built.debug, built.rpath), _sources)
    if given[:1] == ["flags"]:
        parser = _parser("flags", _FLAGS, "cc life.c $(purple flags) -o life")
        parser.add_argument("file", nargs="?", help="a program, for the libraries of its foreign functions")
        linked = parser.parse_args(given[1:])
        return lambda: _reported(lambda: _flags(linked.file), _sources)
    if given[:1] == ["test"]:
        parser = _parser("test", "Run the checks in files.", "purple test checks.purple")
        parser.add_argument("files", nargs="+", metavar="file")
        tested = parser.parse_args(given[1:])
        return lambda: run_tests(tested.files, print)
    if given[:1] == ["fmt"]:
        parser = _parser("fmt", "Format files.", "purple fmt --check life.purple")
        parser.add_argument("files", nargs="+", metavar="file")
        parser.add_argument(
            "--check", action="store_true", help="change nothing; list the files that would change"
        )
        laid_out = parser.parse_args(given[1:])
        return lambda: _reported(lambda: _format(laid_out.files, laid_out.check), _sources)
    if given[:1] == ["memory"]:
        parser = _parser("memory", "Show where memory is freed.", "purple memory --run life.purple")
        parser.add_argument(
            "--run", action="store_true", help="run the program and print the peak memory of its tensors"
        )
        parser.add_argument("file")
        others = "more files to compare; with --run, the program's arguments"
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help=others)
        shown = parser.parse_args(given[1:])
        return lambda: _reported(lambda: _memory(shown.file, shown.run, shown.arguments), _sources)
    parser = argparse.ArgumentParser(
        prog="purple",
        usage=USAGE.replace("\n", "\n       "),
        description="Purple: a small Lisp whose values include tensors.",
        epilog="example:\n  purple -e '(tensor-sum (tensor-ones 2 3))'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"purple {tenfold.__version__}")
    parser.add_argument(
        "-e", metavar="EXPRESSION", dest="expression", help="print the value of an expression"
    )
    parser.add_argument("-c", metavar="FILE", dest="compiled", help="print a program as C99")
    parser.add_argument("file", nargs="?", help="the program to run")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="the program's arguments, which (command-line) returns"
    )
    options = parser.parse_args(given)
    if options.expression is not None:
        rest = [options.file] if options.file is not None else []
        return lambda: _evaluate(options.expression, [*rest, *options.arguments])
    if options.compiled is not None:
        return lambda: _reported(
            lambda: _print(emit_c.compile_program(_expanded(options.compiled), warn=_warn)), _sources
        )
    if options.file is None:
        return None
    return lambda: _run(options.file, options.arguments)


def _parser(command: str, description: str, example: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"purple {command}",
        description=description,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _run(path: str, arguments: list[str]) -> int:
    control.command_line[:] = arguments
    session = Session()

    def work() -> int:
        session.run_text(read_source(path), path)
        return 0

    return _reported(work, session.sources)


def _evaluate(expression: str, arguments: list[str]) -> int:
    control.command_line[:] = arguments
    session = Session()

    def work() -> int:
        value = session.run_text(expression, "<expression>")
        if value is not UNSPECIFIED:
            print(write_text(value))
        return 0

    return _reported(work, session.sources)


_sources: dict[str, str] = {}


def _expanded(path: str) -> core.Program:
    text = read_source(path)
    _sources[path] = text
    return expand_program(text, path)


def _flags(path: str | None) -> int:
    foreign = builder.foreign_flags(_expanded(path)) if path else []
    return _print(shlex.join([*library_flags(build_libtenfold()), *foreign]) + "\n")


def _build(path: str, output: str, debug: bool, rpath: str | None) -> int:
    _sources[path] = read_source(path)
    builder.build(path, output, debug, _warn, rpath)
    return 0


def _format(paths: list[str], check: bool) -> int:
    """Rewrite files in the house layout; with `check`, 1 where one is not in it."""
    status = 0
    for path in paths:
        text = _sources[path] = read_source(path)
        wanted = formatted(text, path)
        if wanted == text:
            continue
        if check:
            status = _print(f"{path}: not in the house layout") or 1
        else:
            Path(path).write_text(wanted, encoding="utf-8")
    return status


def _memory(path: str, run: bool, arguments: list[str]) -> int:
    if not run and arguments:
        return _print(memory.compare([_expanded(argument) for argument in (path, *arguments)]))
    program = _expanded(path)
    if not run:
        return _print(memory.report(program))
    status, liveness = memory.measure(program, arguments)
    _print(str(liveness))
    return status


def _warn(cycle: Cycle) -> None:
    print(warning(cycle.message, cycle.place, cycle.help, _sources), file=sys.stderr)


def _print(text: str) -> int:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0


def _reported(work: Callable[[], int], sources: dict[str, str]) -> int:
    """Do the work where recursion may go deep; tell of errors on the error output."""
    try:
        status = with_deep_stack(work)
    except control.Exit as left:
        status = left.status
    except PurpleError as error:
        sys.stdout.flush()
        print(report(error, sources), file=sys.stderr)
        return 1
    except MissingEngine as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        sys.stdout.flush()
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        internal = PurpleError(
            f"internal error: {type(error).__name__}: {error}", "internal", help="please report this"
        )
        print(report(internal, {}), file=sys.stderr)
        return 70
    sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(command())
