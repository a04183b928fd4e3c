"""`tenfold profile`: where a script's time and memory go."""

from __future__ import annotations

import argparse
import sys

from tenfold.command.files import execute
from tenfold.profiler import profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows", type=int, default=20, help="how many kernels to print (default: %(default)s)"
    )
    parser.add_argument(
        "--sort", help="the column to sort by: time (the default), count, flops, bytes, cpu_time_total, …"
    )
    parser.add_argument("--trace", metavar="FILE", help="write a trace for chrome://tracing and Perfetto")
    parser.add_argument("--memory", action="store_true", help="also print what holds memory")
    parser.add_argument("file", help="the Python file that is run")
    further = parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="passed to the file as sys.argv[1:]"
    )
    further.required = False  # there may be none, which argparse would demand along with the file


def run(parsed: argparse.Namespace) -> int:
    sys.argv = [parsed.file, *parsed.arguments]
    with profile() as taken:
        status, _ = execute(parsed.file)
    print(taken.key_averages().table(sort_by=parsed.sort, row_limit=parsed.rows))
    if parsed.memory:
        print(taken.memory_table())
    if parsed.trace:
        taken.export_chrome_trace(parsed.trace)
        print(f"the trace is in {parsed.trace}: open it with chrome://tracing or https://ui.perfetto.dev")
    return status
