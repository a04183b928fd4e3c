"""The commands `tenfold capi build|flags|header|describe`."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import signal
import sys
import time
from collections.abc import Iterator

from tenfold.base.progress import Progress
from tenfold.base.subcommands import Command, adder
from tenfold.base.terminal import console
from tenfold.capi.build import SANITIZERS, Built, build
from tenfold.capi.describe import HEADER, describe
from tenfold.capi.locate import find_libtorch

__all__ = ["add_arguments", "built_with_a_bar"]


def add_arguments(parser: argparse.ArgumentParser) -> Command:
    """Give the command `capi` its own commands; returns what adds others to them."""
    command = adder(parser, "ACTION")
    built = command(
        "build",
        _build,
        "Build libtenfold against the installed libtorch, unless it is there.",
        "tenfold capi build --jobs 4",
    )
    built.add_argument(
        "--sanitize", default="", metavar="LIST", help=f"build with sanitizers: any of {','.join(SANITIZERS)}"
    )
    built.add_argument(
        "--jobs", type=int, help="how many compilers run at a time (default: one for each core)"
    )
    flags = command(
        "flags",
        _flags,
        "Print the flags that compile and link a program with libtenfold.",
        "tenfold capi flags          (as in: cc program.c $(tenfold capi flags) -o program)",
    )
    flags.add_argument("--compile", action="store_true", help="print the compiler's flags only")
    flags.add_argument("--link", action="store_true", help="print the linker's flags only")
    flags.add_argument(
        "--rt", action="store_true", help="print the flags of libtenfold_rt, whose handles are numbers"
    )
    flags.add_argument("--torch", action="store_true", help="add the flags of libtorch, for tenfold/torch.h")
    flags.add_argument(
        "--library", action="store_true", help="print the path of libtenfold.so instead, for dlopen"
    )
    flags.add_argument("--sanitize", default="", metavar="LIST", help="use the build with these sanitizers")
    header = command(
        "header", _header, "Print tenfold.h, or where the built headers are.", "tenfold capi header --path"
    )
    header.add_argument("--path", action="store_true", help="print the include folder instead")
    described = command(
        "describe",
        _describe,
        "Print what every function takes, returns and owns.",
        "tenfold capi describe --json",
    )
    described.add_argument("--json", action="store_true", help="print JSON, for programs that read it")
    return command


def _sanitizers(parsed: argparse.Namespace) -> tuple[str, ...]:
    return tuple(each for each in parsed.sanitize.split(",") if each)


def built_with_a_bar(sanitize: tuple[str, ...] = (), jobs: int | None = None) -> Built:
    """The build, with a bar on the standard error so that what is printed stays clean."""
    with _cleared_up(), Progress[None](description="libtenfold") as bar:
        told = False

        def progress(done: str, step: int, steps: int) -> None:
            nonlocal told
            if not told and not sys.stderr.isatty():  # in a log, a line says what takes so long
                bar.write("building libtenfold against libtorch: this takes some minutes, once", sys.stderr)
            told, bar.total = True, steps
            bar.advance(step - bar.done, done)

        return build(sanitize=sanitize, jobs=jobs, progress=progress)


@contextlib.contextmanager
def _cleared_up() -> Iterator[None]:
    """A block that clears up as after Ctrl-C when the program is terminated, or its terminal closed."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    taken = [each for each, handler in before.items() if handler is not signal.SIG_IGN]  # as nohup asks for
    for each in taken:
        signal.signal(each, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, before[each] or signal.SIG_DFL)


def _build(parsed: argparse.Namespace) -> int:
    start = time.perf_counter()
    made = built_with_a_bar(_sanitizers(parsed), parsed.jobs)
    console.print(f"{made.library}  (libtorch {made.libtorch.version}, {time.perf_counter() - start:.1f} s)")
    return 0


def _flags(parsed: argparse.Namespace) -> int:
    made = built_with_a_bar(_sanitizers(parsed))
    if parsed.library:
        print(made.lib / "libtenfold_rt.so" if parsed.rt else made.library)
        return 0
    both = parsed.compile == parsed.link
    flags = made.compile_flags if parsed.compile or both else []
    links = made.rt_link_flags if parsed.rt else made.link_flags
    if parsed.torch:
        flags = [*flags, *(made.torch_compile_flags if flags else [])]
        links = [*links, *made.torch_link_flags]
    print(shlex.join([*flags, *(links if parsed.link or both else [])]))
    return 0


def _header(parsed: argparse.Namespace) -> int:
    print(
        built_with_a_bar().include if parsed.path else HEADER.read_text(encoding="utf-8"),
        end="\n" if parsed.path else "",
    )
    return 0


def _describe(parsed: argparse.Namespace) -> int:
    description = describe(find_libtorch())
    if parsed.json:
        json.dump(description.as_json(), sys.stdout, indent=1)
        print()
        return 0
    for function in description.functions:
        print(f"{function.declaration};\n    {function.doc}")
    return 0
