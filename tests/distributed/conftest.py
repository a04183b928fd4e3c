"""Programs of eight devices run in a process of their own: the number of devices is fixed when a process
first computes. To run them directly:

    TENFOLD_CPU_DEVICES=8 pytest -o python_files='*.py' tests/distributed/eight_devices
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiling import xla_flags

HERE = Path(__file__).parent / "eight_devices"


class Outcomes:
    """What became of the tests of each file, which are run once, when one of them is asked for."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.texts: dict[str, str] = {}

    def of(self, file: str, test: str) -> str:
        if file not in self.texts:
            command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-o"]
            command += ["python_files=*.py", str(HERE / f"{file}.py")]
            environment = {**os.environ, **self.variables, "TENFOLD_CPU_DEVICES": "8"}
            environment.pop("PYTEST_XDIST_WORKER", None)
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
            self.texts[file] = done.stdout + done.stderr
        text = self.texts[file]
        outcomes = re.findall(rf"^([A-Z]+) \S*::{test}(?:\[.*\])?(?: - .*)?$", text, re.MULTILINE)
        return "" if set(outcomes) == {"PASSED"} else text


@pytest.fixture(scope="session")
def on_eight_devices(request: pytest.FixtureRequest) -> Outcomes:
    return Outcomes(xla_flags(request.config))
