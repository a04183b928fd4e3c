"""What the tests of compiled functions share."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold.runtime import compile as programs, evaluate, executables
from tests.random_programs.open_sizes import hostile, interpreted


@pytest.fixture
def recordings(monkeypatch):
    """Every function that is recorded from here on."""
    made = []
    recorded = programs.specialize

    def trace(*args: Any, **kwargs: Any) -> Any:
        made.append(args[0])
        return recorded(*args, **kwargs)

    monkeypatch.setattr(programs, "specialize", trace)
    return made


@pytest.fixture
def hostile_padding(monkeypatch):
    """NaN, or an index far outside, in all padding."""
    monkeypatch.setattr(evaluate, "blank", hostile)
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")


@pytest.fixture
def on_tier_0(monkeypatch):
    """Open programs are interpreted: that is another oracle, and compiles nothing."""
    monkeypatch.setattr(executables, "build_function", interpreted)
