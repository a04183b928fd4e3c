"""What all tests share: no compilation cache on disk, and a summary of what the generated suite compared."""

from __future__ import annotations

import os
from typing import Any

# Before any import of Tenfold: a test must not pass because of what an earlier run has left on disk.
os.environ["TENFOLD_CACHE_DIR"] = ""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many calls the generated suite compared with PyTorch, and what became of the others."""
    compared = refused = more = rows = 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, counts in getattr(report, "user_properties", []):
                if name == "cases" and getattr(report, "when", "") == "call":
                    rows += 1
                    compared, refused, more = compared + counts[0], refused + counts[1], more + counts[2]
    if rows:
        terminalreporter.section("generated from the op table")
        terminalreporter.line(
            f"{rows} rows: {compared} calls compared with PyTorch; of those that it refuses "
            f"{refused} are refused and {more} run"
        )
