"""What users of R's torch package expect of a call: the sentences of r/behaviour*.R, each a test."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from tests.bindings.r_process import library, run

SCRIPTS = sorted(Path(__file__).with_name("r").glob("behaviour*.R"))
PROMISES = [
    (script.name, sentence)
    for script in SCRIPTS
    for sentence in re.findall(r'^behaves\("(.*)", local', script.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    library()


@functools.cache
def told(script: str) -> dict[str, str]:
    """What each sentence of a script came to, all of them in one R process."""
    printed = run(Path(__file__).with_name("r") / script)
    return dict(line.split("\t", 1) for line in printed.splitlines() if "\t" in line)


@pytest.mark.parametrize(("script", "sentence"), PROMISES)
def test_r_behaves(script: str, sentence: str) -> None:
    assert told(script)[sentence] == "fine"
