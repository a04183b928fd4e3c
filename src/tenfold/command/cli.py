"""The commands demo, run, launch, profile, show, explain, build, ops, doctor, capi; each --help has an
example."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

import tenfold
from tenfold.base.errors import ArgumentError, TenfoldError
from tenfold.base.subcommands import Command, adder
from tenfold.base.terminal import console
from tenfold.capi.commands import add_arguments as add_capi_arguments
from tenfold.command import completion, demo, explaining, listing, profiling
from tenfold.command.doctor import examine
from tenfold.command.files import execute as _execute
from tenfold.command.install import add_install
from tenfold.distributed.launch import add_arguments as add_launch_arguments, run as launch
from tenfold.exporting import DIALECTS
from tenfold.exporting.exported import form_of
from tenfold.runtime import executables
from tenfold.runtime.stages import STAGES, stage_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 1 for a user's error and 2 for a wrong command line."""
    parsed = _parser().parse_args(arguments)
    try:
        if getattr(parsed, "as_torch", False):
            tenfold.install_as_torch()
        status = parsed.command(parsed)
        sys.stdout.flush()
        return status
    except TenfoldError as error:
        console.file.flush()
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tenfold",
        description="A tensor compiler with many doors.",
        epilog="example:\n  tenfold explain train.py --open\n\nFor the others: tenfold COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tenfold {tenfold.__version__}")
    command = adder(parser, "COMMAND")
    _add_running(command)
    _add_looking(command)
    _add_build(command)
    _add_others(command, parser)
    return parser


def _add_running(command: Command) -> None:
    shown = command(
        "demo",
        _demo,
        "Show a small program at every stage, train a network to read digits, and time it.",
        "tenfold demo --picture digits.png",
    )
    shown.add_argument(
        "--picture", default="tenfold-demo.png", help="where the picture goes (default: %(default)s)"
    )
    run = command(
        "run",
        _run,
        "Run a Python file or a built program. Errors show your line and what to do.",
        "tenfold run train.py --steps 10\n  tenfold run --as-torch train.py\n  tenfold run model.vmfb"
        " --input x.npy --input '[1, 2]'",
    )
    _add_as_torch(run)
    run.add_argument("file", help="a Python file, or a program that `tenfold build` wrote")
    further = run.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        help="passed to the file as sys.argv[1:]; a .vmfb or .stablehlo takes one --input for each tensor "
        "(a .npy file, or numbers as JSON), and --save FILE.npz",
    )
    further.required = False  # there may be none, which argparse would demand along with the file
    profiled = command(
        "profile",
        profiling.run,
        "Run a Python file and print where its time went: in kernels, by your lines, and on the host.",
        "tenfold profile train.py --steps 10\n  tenfold profile --rows 40 --trace trace.json train.py",
    )
    _add_as_torch(profiled)
    profiling.add_arguments(profiled)


def _add_looking(command: Command) -> None:
    show = command(
        "show",
        _show,
        "Run a Python file and print each program that it evaluates.",
        "tenfold show model.py --stage stablehlo",
    )
    _add_as_torch(show)
    show.add_argument("file", help="the Python file that is run")
    show.add_argument(
        "--stage", choices=STAGES, help="print one stage only (default: trace, flat and stablehlo)"
    )
    show.add_argument(
        "--lines", action="store_true", help="print the file's lines beside MLIR's ops, as comments"
    )
    explained = command(
        "explain",
        lambda parsed: explaining.run(parsed, _execute),
        "Write a page that shows every stage of a file's programs side by side.",
        explaining.EXAMPLES,
    )
    _add_as_torch(explained)
    explaining.add_arguments(explained)


def _add_as_torch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-torch", action="store_true", help="make `import torch` import Tenfold, in the whole program"
    )


def _add_build(command: Command) -> None:
    built = command(
        "build",
        _build,
        "Compile the model that a Python file defines to a .vmfb (with IREE), .stablehlo or MLIR file.",
        "tenfold build model.py -o model.vmfb",
    )
    built.add_argument(
        "file", help="a Python file that defines `model`, its `inputs` and, if sizes are open, `dynamic`"
    )
    built.add_argument(
        "-o",
        "--output",
        required=True,
        help="the file to write, which ends in .vmfb, .stablehlo, .mlir or .mlirbc",
    )
    built.add_argument(
        "--dialect",
        choices=DIALECTS,
        help="the dialect to compile from, or to write (default: stablehlo, or torch if sizes are open)",
    )
    built.add_argument("--model", default="model", help="the name of the model (default: %(default)s)")
    built.add_argument("--inputs", default="inputs", help="the name of its inputs (default: %(default)s)")


def _add_others(command: Command, parser: argparse.ArgumentParser) -> None:
    listed = command("ops", listing.run, "List the op table, or describe one op.", "tenfold ops softmax")
    listed.add_argument("name", nargs="?", help="an op, such as add or add.Tensor")
    listed.add_argument(
        "--missing", action="store_true", help="print PyTorch's names that Tenfold does not have"
    )
    launched = command(
        "launch",
        launch,
        "Run a Python file in several processes that work together, as torchrun does.",
        "tenfold launch --nproc-per-node 2 train.py --steps 10",
    )
    add_launch_arguments(launched)
    command("doctor", _doctor, "Say what is installed and which engines and devices work.", "tenfold doctor")
    completing = command(
        "completion",
        lambda parsed: print(completion.script(parsed.shell, parser), end="") or 0,
        "Print a script that makes a shell complete commands and options.",
        "tenfold completion bash\n\nto load it in every shell:\n  "
        + "\n  ".join(completion.INSTALL.values()),
    )
    completing.add_argument("shell", choices=completion.SHELLS, help="the shell that you use")
    capi = command(
        "capi", None, "Build libtenfold, libtorch over a C ABI, and say how to use it.", "tenfold capi build"
    )
    add_install(add_capi_arguments(capi))


def _demo(parsed: argparse.Namespace) -> int:
    demo.run(console, Path(parsed.picture))
    return 0


def _run(parsed: argparse.Namespace) -> int:
    if parsed.file.endswith((".vmfb", ".stablehlo")):
        return _run_built(parsed.file, parsed.arguments)
    sys.argv = [parsed.file, *parsed.arguments]
    return _execute(parsed.file)[0]


def _show(parsed: argparse.Namespace) -> int:
    printed: set[Any] = set()

    def observe(program: Any, device: Any) -> None:
        if program.key not in printed:  # it may run on tier 0 and be compiled meanwhile
            printed.add(program.key)
            print(stage_text(program, device, parsed.stage, parsed.lines))

    sys.argv = [parsed.file]
    with executables.observing(observe):
        status, names = _execute(parsed.file)
        if not printed and not status:
            # A file that asks for no value: show what it would take to have the tensors it leaves behind.
            left = [name for name in names.values() if isinstance(name, tenfold.Tensor)]
            pending = [each for each in left if each.current().buffer is None]
            if pending:
                print(pending[-1].show(parsed.stage, parsed.lines))
            else:
                raise ArgumentError(
                    f"{parsed.file} evaluates no tensor", help="compute something, or print a tensor"
                )
    return status


def _build(parsed: argparse.Namespace) -> int:
    form_of(parsed.output)  # so that a wrong one is told before the file runs
    sys.argv = [parsed.file]
    status, names = _execute(parsed.file, "__tenfold_build__")
    if status:
        return status
    for option, name in (("model", parsed.model), ("inputs", parsed.inputs)):
        if name not in names:
            raise ArgumentError(
                f"{parsed.file} defines no {name!r}",
                help=f"assign {'the model' if option == 'model' else 'example tensors'} to it, or say "
                f"--{option} NAME",
            )
    exported = tenfold.export(
        names[parsed.model],
        names[parsed.inputs],
        dialect=parsed.dialect or ("torch" if "dynamic" in names else "stablehlo"),
        parameters="literals",
        dynamic=names.get("dynamic"),
    )
    exported.save(parsed.output)
    size = os.path.getsize(parsed.output) / 1e6
    takes, gives = (", ".join(map(str, each)) for each in (exported.inputs, exported.outputs))
    print(f"{parsed.output}: ({takes}) -> ({gives}), {size:.1f} MB")
    return 0


def _run_built(path: str, arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=f"tenfold run {path}")
    parser.add_argument(
        "--input", action="append", default=[], help="a .npy file, or numbers as JSON, as [[1, 2], [3, 4]]"
    )
    parser.add_argument("--save", metavar="FILE", help="write the results to a .npz file, and print none")
    parsed = parser.parse_args(arguments)
    with _unplaced():
        module = tenfold.load_vmfb(path) if path.endswith(".vmfb") else tenfold.load_stablehlo(path)
    types = module.inputs or [None] * len(parsed.input)
    if len(types) != len(parsed.input):
        takes = ", ".join(map(str, types))
        raise ArgumentError(
            f"{path} takes {len(types)} tensors ({takes}), not {len(parsed.input)}",
            help="give --input once for each",
        )
    given = [_input(each, type) for each, type in zip(parsed.input, types, strict=True)]
    with _unplaced():
        results = module(*given)
    results = results if isinstance(results, tuple) else (results,)
    if parsed.save:
        np.savez(parsed.save, *[result.numpy() for result in results])
    else:
        for result in results:
            print(result)
    return 0


@contextlib.contextmanager
def _unplaced() -> Iterator[None]:
    """Errors in here are not of a line in the user's program: there is none."""
    try:
        yield
    except TenfoldError as error:
        raise type(error)(error.message, help=error.help) from None


def _input(text: str, type: Any) -> tenfold.Tensor:
    """What an --input says: a file of NumPy's, or numbers, which take the dtype that is wanted."""
    if text.endswith(".npy"):
        try:
            return tenfold.tensor(np.load(text))
        except (OSError, ValueError) as error:
            raise ArgumentError(f"--input {text}: {error}") from None
    try:
        numbers = json.loads(text)
    except ValueError:
        raise ArgumentError(
            f"--input {text} is neither a .npy file nor numbers", help="write numbers as [[1, 2], [3, 4]]"
        ) from None
    return tenfold.tensor(numbers, dtype=type.dtype if type is not None else None)


def _doctor(parsed: argparse.Namespace) -> int:
    findings = examine()
    width = max(len(finding.what) for finding in findings)
    for finding in findings:  # lines are not broken, so that commands can be copied
        mark = "[green]ok[/green]" if finding.works else "[yellow]--[/yellow]"
        console.print(f"{mark}  {finding.what:<{width}}  {escape(finding.found)}", soft_wrap=True)
        if finding.remedy:
            console.print(f"    {'':<{width}}  [bold]{escape(finding.remedy)}[/bold]", soft_wrap=True)
    return 0 if all(each.works or each.optional for each in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
