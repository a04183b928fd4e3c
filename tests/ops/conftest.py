"""What the generated tests share: what they cost is XLA's compile."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _kernels_of_powers(request: pytest.FixtureRequest) -> None:
    if "pow" in request.node.name:
        request.getfixturevalue("compiled_as_by_users")
