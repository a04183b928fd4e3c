"""`tenfold explain`: the page with every stage of a program side by side."""

from __future__ import annotations

import argparse
import inspect
import os
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tenfold
from tenfold.base.errors import ArgumentError
from tenfold.compiler import uncompiled
from tenfold.explain import html, runs
from tenfold.explain.explanation import Explanation, explain_call, explain_trace
from tenfold.explain.observed import described, observing_programs
from tenfold.trace.collect import collect

# Runs a file under a name for its module: its exit status, and the names that it leaves behind.
Execute = Callable[..., tuple[int, dict[str, Any]]]
EXAMPLES = (
    "tenfold explain train.py -o page.html --open\n"
    "  tenfold explain model.py --function forward    (on the file's `inputs`, or as the file calls it)\n"
    "  tenfold explain new.py --against old.py        (two versions compared, stage by stage)\n"
    "  tenfold explain --runs train.py                (what ran on which tier, what was recompiled and why)\n"
    "  tenfold explain program.purple --serve         (a page that follows the file as it changes)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the Python file that is run, or a Purple program")
    parser.add_argument(
        "--function",
        metavar="NAME",
        help="explain only this function, method or model, on the file's `inputs` or as the file calls it",
    )
    parser.add_argument("--against", metavar="OLD", help="an older version of the file, to compare with")
    parser.add_argument("-o", "--output", metavar="PAGE", help="the page to write (default: FILE.html)")
    parser.add_argument("--open", action="store_true", help="show the page in the browser")
    parser.add_argument(
        "--runs",
        action="store_true",
        help="show instead what ran on which tier, what is guarded and why it recompiled",
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="serve the page to this machine only, and update it when the file changes",
    )
    parser.add_argument(
        "--port", type=_port, default=0, help="the port to serve it at (default: any free port)"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: they go from 0 to 65535")
    return int(text)


def run(parsed: argparse.Namespace, execute: Execute) -> int:
    """Run the file, explain what it evaluates, and write the page."""
    if parsed.serve:
        return _serve(parsed)
    sys.argv = [parsed.file]
    output = _output(parsed)
    status, page, summary = made(parsed, execute)
    if status:
        print(f"{parsed.file} ended with status {status}: no page was written", file=sys.stderr)
        return status
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{output} cannot be written: {error.strerror}") from None
    print(f"{output}: {summary}, {len(page) / 1e6:.2f} MB")
    if parsed.open:
        _open(output.resolve().as_uri())
    return 0


def _output(parsed: argparse.Namespace) -> Path:
    """Where the page goes. A wrong place is told before the file runs, which may take long."""
    output = Path(parsed.output or Path(parsed.file).with_suffix(".html").name)
    if output.is_dir():
        raise ArgumentError(f"{output} is a folder", help=f"give the page a name: -o {output / 'page.html'}")
    if not output.parent.is_dir():
        raise ArgumentError(f"there is no folder {output.parent}", help="create it, or write elsewhere")
    return output


def _open(address: str) -> None:
    if not webbrowser.open(address):
        print(f"no browser was found: open {address} yourself", file=sys.stderr)


def _serve(parsed: argparse.Namespace) -> int:
    from tenfold.command.serving import Watched, serve

    if not os.path.isfile(parsed.file):
        raise ArgumentError(f"there is no file {parsed.file}")
    options = ["--function", parsed.function] if parsed.function else []
    options += ["--against", parsed.against] if parsed.against else []
    options += ["--runs"] if parsed.runs else []
    options += ["--as-torch"] if parsed.as_torch else []

    def ready(address: str) -> None:
        print(f"{parsed.file} at {address} (Ctrl-C ends it)", flush=True)
        if parsed.open:
            _open(address)

    serve(Watched(parsed.file, options), parsed.port, ready)
    return 0


def made(parsed: argparse.Namespace, execute: Execute) -> tuple[int, str, str]:
    """The exit status of the file, the page, and what is on it in a few words."""
    title = os.path.basename(parsed.file)
    purple = parsed.file.endswith(".purple")
    if parsed.runs:
        run_file = _run_purple if purple else execute
        status, _names = run_file(parsed.file)  # held: functions that are gone have nothing to tell
        functions, programs = runs.compiled_functions(), runs.programs_run()
        summary = f"{_counted(functions, 'compiled function')}, {_counted(programs, 'program')} by tier"
        return status, "" if status else runs.page(title), summary
    before = _other_version(parsed) if parsed.against else []
    status, explanations = _purple(parsed) if purple else _explained(parsed, execute)
    page = html.page(title, [explanation.to_dict() for explanation in explanations], before=before)
    return status, page, _summary(explanations) if explanations else ""


def _summary(explanations: Sequence[Explanation]) -> str:
    """What is on the page, in a few words."""
    first = explanations[0]
    lines = {stage.key: len(stage.lines) for stage in first.stages}
    compiled = [f"{lines['owned']:,} lines in the owned form, {lines['c']:,} of C"] if "c" in lines else []
    if not first.ops and compiled:
        return compiled[0]
    nodes = sum(len(explanation.nodes) - explanation.source_lines for explanation in explanations)
    ops = sum(len(explanation.ops) for explanation in explanations)
    sizes = f"{_counted(explanations, 'program')}, {nodes:,} Trace nodes, {ops:,} FlatIR ops"
    return ", ".join([sizes, *compiled])


def _counted(things: Sequence[object], name: str) -> str:
    return f"{len(things):,} {name}{'' if len(things) == 1 else 's'}"


def _other_version(parsed: argparse.Namespace) -> list[dict[str, Any]]:
    """The programs of another version of the file, explained by a process of its own: this one would find
    those that both have compiled already."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "page.html"
        command = [sys.executable, "-m", "tenfold", "explain", parsed.against, "-o", str(output)]
        command += ["--function", parsed.function] if parsed.function else []
        command += ["--as-torch"] if parsed.as_torch else []
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            raise ArgumentError(f"{parsed.against} cannot be explained:\n{done.stderr.strip()}")
        return html.programs_of(output.read_text(encoding="utf-8"))


def _purple(parsed: argparse.Namespace) -> tuple[int, list[Explanation]]:
    from tenfold.purple.errors import PurpleError, report
    from tenfold.purple.explained import explain_purple
    from tenfold.purple.reader import read_source

    try:
        return 0, explain_purple(parsed.file, parsed.function)
    except PurpleError as error:
        sources = {parsed.file: read_source(parsed.file)} if error.place.file == parsed.file else {}
        print(report(error, sources), file=sys.stderr)
        return 1, []


def _run_purple(path: str) -> tuple[int, dict[str, Any]]:
    from tenfold.purple.cli import main

    return main([path]), {}


def _explained(parsed: argparse.Namespace, execute: Execute) -> tuple[int, list[Explanation]]:
    concerns = lambda code: parsed.function in code.co_qualname.split(".")
    with observing_programs(concerns if parsed.function else None) as observed:
        status, names = execute(parsed.file, "__tenfold_explain__" if parsed.function else "__main__")
        if status:
            return status, []
        if parsed.function:
            arguments = _inputs(names.get(parsed.function), names)
            if arguments is not None:
                return 0, [explain_call(names[parsed.function], arguments, {})]
            if not observed.drafts:  # it may be called where the file is run as a program
                status, names = execute(parsed.file)
        found = observed.explanations() or ([] if parsed.function else _pending(names))
    if not found and not status:
        raise _nothing_found(parsed, names)
    return status, found


def _nothing_found(parsed: argparse.Namespace, names: dict[str, Any]) -> ArgumentError:
    help = "compute something, or name a function with --function and assign its arguments to `inputs`"
    if not parsed.function:
        return ArgumentError(f"{parsed.file} evaluates no tensor", help=help)
    wanted = names.get(parsed.function)
    if callable(wanted) and "inputs" in names and not isinstance(wanted, type):
        complaint = f"{parsed.function} takes {_signature(wanted)}: `inputs` of {parsed.file} do not fit"
        return ArgumentError(complaint, help="assign its arguments to `inputs`, or call it in the file")
    if parsed.function in names:
        return ArgumentError(f"{parsed.file} calls {parsed.function} on no tensor", help=help)
    return ArgumentError(
        f"{parsed.file} neither defines {parsed.function!r} nor calls a method of that name on a tensor"
    )


def _inputs(wanted: Any, names: dict[str, Any]) -> tuple[Any, ...] | None:
    """The arguments to explain a function of a file on: the file's `inputs`, or no arguments if it has none.
    None where they do not fit, and for a class: then what the file itself calls is explained."""
    if not callable(wanted) or isinstance(wanted, type):
        return None
    inputs = names.get("inputs", ())
    arguments = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    try:
        _signature(wanted).bind(*arguments)
    except TypeError:
        return None
    except ValueError:  # one that is not written in Python
        pass
    return arguments


def _signature(called: Any) -> inspect.Signature:
    plain = uncompiled(called)
    return inspect.signature(plain.forward if isinstance(plain, tenfold.nn.Module) else plain)


def _pending(names: dict[str, Any]) -> list[Explanation]:
    """Of a file that asks for no value: what it would take to have the last tensor that it leaves behind."""
    left = [name.current() for name in names.values() if isinstance(name, tenfold.Tensor)]
    waiting = [each for each in left if each.buffer is None]
    if not waiting:
        return []
    trace, _ = collect(waiting[-1:])
    return [explain_trace(trace, waiting[-1].device, described(trace))]
