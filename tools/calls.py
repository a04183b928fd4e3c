"""A pytest plugin: notes which functions of the package each test calls, and how long the test takes.

`python -m pytest -p tools.calls --calls FILE …` writes to FILE, as JSON, the tests that failed, and for each
function those that call it, the quickest first. A function goes by its file and its first line.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--calls", metavar="FILE", help="write which tests call each function")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--calls"):
        config.pluginmanager.register(Calls(config.rootpath, Path(config.getoption("--calls"))))


class Calls:
    def __init__(self, root: Path, file: Path):
        self.sources, self.root, self.file = str(root / "src"), root, file
        self.failed: list[str] = []
        self.called: dict[CodeType, dict[str, float]] = defaultdict(dict)  # tests and their seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        seen: set[CodeType] = set()

        def trace(frame: FrameType, event: str, argument: Any) -> None:
            seen.add(frame.f_code)

        began = time.process_time()
        sys.settrace(trace)
        threading.settrace(trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            took = time.process_time() - began
            for code in seen:
                if code.co_filename.startswith(self.sources):
                    self.called[code][item.nodeid] = took

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        callers = {
            f"{Path(code.co_filename).relative_to(self.root)}:{code.co_firstlineno}": sorted(
                tests, key=tests.__getitem__
            )
            for code, tests in self.called.items()
        }
        told = {"callers": callers, "failed": list(dict.fromkeys(self.failed))}
        self.file.write_text(json.dumps(told), encoding="utf-8")
