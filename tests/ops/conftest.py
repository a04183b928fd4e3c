"""What the generated tests share: what they cost is XLA's compile."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _compiled_quickly(compiled_quickly: None) -> None:
    pass
