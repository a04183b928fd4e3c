"""What the generated tests share: what they cost is XLA's compile."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _kernels_made_quickly(request: pytest.FixtureRequest) -> None:
    """Make kernels quickly, but for those of powers: made that way, integers to negative powers are wrong."""
    powers = "pow" in request.node.name
    request.getfixturevalue("compiled_quickly" if powers else "kernels_made_quickly")
