"""What the tests of compiled functions share."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold.runtime import compile as programs


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
