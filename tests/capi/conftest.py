"""What tests of libtenfold are given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.capi.bridge import Bridge, nothing_left


@pytest.fixture
def tn() -> Iterator[Bridge]:
    """The library; what a test leaves over is its failure."""
    bridge = Bridge()
    with nothing_left(bridge):
        yield bridge
