"""`tenfold profile`: where a script's time and memory go."""

from __future__ import annotations

import argparse
import sys

from tenfold.command.files import execute
from tenfold.profiler import profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=20, help="how many kernels (default: %(default)s)")
    parser.add_argument("--sort", help="by what: time (the default), count, flops, bytes, cpu_time_total, …")
    parser.add_argument("--trace", metavar="FILE", help="write a trace for chrome://tracing and Perfetto")
    parser.add_argument("--memory", action="store_true", help="print what holds memory, too")
    parser.add_argument("file")
    further = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="handed to the file")
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
