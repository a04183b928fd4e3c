"""A profile as a table for the terminal, and as a file for Chrome's tracing page and Perfetto."""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from tenfold.base.errors import ArgumentError
from tenfold.profiler.events import Average, Kernel, Ran
from tenfold.profiler.peaks import Peaks
from tenfold.profiler.spans import Span

# PyTorch's names of what a table is sorted by, and those of ours.
SORTS = {
    "time": lambda each: each.time,
    "cpu_time_total": lambda each: each.cpu_time_total,
    "self_cpu_time_total": lambda each: each.self_cpu_time_total,
    "cpu_time": lambda each: each.cpu_time,
    **{
        f"{prefix}{device}_time_total": lambda each: each.device_time_total
        for prefix in ("", "self_")
        for device in ("cuda", "device")
    },
    **dict.fromkeys(("cuda_time", "device_time"), lambda each: each.device_time),
    "count": lambda each: each.count,
    "flops": lambda each: each.flops,
    "bytes": lambda each: each.bytes,
}


def table(
    averages: Sequence[Average], sort_by: str | None, row_limit: int, peaks: dict[bool, Peaks | None]
) -> str:
    """The rows that took longest, or have most of `sort_by`, and the totals of kernels and of the host."""
    if sort_by is not None and sort_by not in SORTS:
        raise ArgumentError(f"a table is not sorted by {sort_by!r}", help=f"one of {', '.join(SORTS)}")
    rows = sorted(averages, key=SORTS[sort_by or "time"], reverse=True)
    total = sum(average.time for average in averages if average.is_kernel) or 1.0
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("kernel, or phase of the host", no_wrap=True, max_width=44)
    for title in ("runs", "total", "%", "each", "GFLOP/s", "GB/s", "roofline"):
        made.add_column(title, justify="right", no_wrap=True)
    made.add_column("line", no_wrap=True, max_width=30)
    made.add_column("fuses", no_wrap=True, max_width=40)
    for row in rows[: row_limit if row_limit >= 0 else None]:
        made.add_row(*_row(row, total, peaks.get(row.on_gpu)))
    text = io.StringIO()
    Console(file=text, width=190, color_system=None).print(made)
    kernels = sum(average.time for average in averages if average.is_kernel)
    host = sum(average.self_cpu_time_total for average in averages if average.key.startswith("tenfold: "))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join([*lines, f"kernels {_time(kernels)}; around them on the host {_time(host)}"])


def _row(each: Average, total: float, peaks: Peaks | None) -> list[str]:
    seconds = each.time / 1e6
    rate = lambda amount: f"{amount / seconds / 1e9:,.1f}" if amount and seconds else ""
    share = peaks.share(each.flops, each.bytes, seconds) if peaks and each.is_kernel and seconds else 0.0
    counts = Counter(each.fused)
    return [
        each.key,
        str(each.count),
        _time(each.time),
        f"{100 * each.time / total:.1f}" if each.is_kernel else "",
        _time(each.time / max(1, each.count)),
        rate(each.flops),
        rate(each.bytes),
        "" if not share else f"{100 * share:.0f} %" if share <= 1 else "cached",
        ", ".join(_short(line) for line in each.lines),
        " ".join(op if count == 1 else f"{op}×{count}" for op, count in counts.most_common()),
    ]


def _time(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f} s"
    return f"{microseconds / 1e3:.3f} ms" if microseconds >= 1e3 else f"{microseconds:.1f} µs"


def _short(line: str) -> str:
    """The file's name and the number alone."""
    return os.path.basename(line)


def memory_table(ran: Sequence[Ran], row_limit: int) -> str:
    """The most memory that each program holds, and the arrays that hold it."""
    lines = []
    for i, each in enumerate(sorted(ran, key=lambda each: -each.memory.peak)):
        lines.append(
            f"program {i}: {each.memory.peak / 1e6:,.1f} MB at most by liveness, "
            f"{each.bytes / 1e6:,.1f} by XLA"
        )
        lines += [
            f"  {held.bytes / 1e6:>10,.1f} MB  {held.name:<40.40} {_short(held.line)}"
            for held in each.memory.holders[:row_limit]
        ]
    return "\n".join(lines)


def chrome_trace(kernels: Sequence[Kernel], spans: Sequence[Span], ran: Sequence[Ran], start: int) -> str:
    """The events in Chrome's format, which Perfetto reads too; with the memory that programs hold."""
    events: list[dict[str, Any]] = []
    lines = {each: i + 1 for i, each in enumerate(dict.fromkeys([kernel.line for kernel in kernels]))}
    threads = {each: i for i, each in enumerate(dict.fromkeys([each.thread for each in spans]))}
    for pid, name in ((0, "host"), (1, "kernels")):
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
    events += [
        {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": line}}
        for line, tid in lines.items()
    ]
    for kernel in kernels:
        event: dict[str, Any] = {
            "ph": "X", "pid": 1, "tid": lines[kernel.line], "name": kernel.name, "ts": kernel.start / 1e3,
            "dur": kernel.duration / 1e3, "cat": "kernel",
        }  # fmt: skip
        if kernel.instruction is not None:
            event["args"] = {
                "lines": kernel.instruction.lines, "fuses": kernel.instruction.fused,
                "flops": kernel.instruction.flops, "bytes": kernel.instruction.bytes,
            }  # fmt: skip
            held = ran[kernel.program].memory.timeline.get(kernel.name) if kernel.program >= 0 else None
            if held is not None:
                counter = {"ph": "C", "pid": 1, "name": "memory (MB)", "ts": kernel.start / 1e3}
                events.append({**counter, "args": {"held": held / 1e6}})
        events.append(event)
    for span in spans:
        events.append(
            {
                "ph": "X",
                "pid": 0,
                "tid": threads[span.thread],
                "name": span.name,
                "cat": span.kind,
                "ts": (span.start - start) / 1e3,
                "dur": (span.end - span.start) / 1e3,
            }
        )
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
