"""XLA's exceptions as ours."""

from __future__ import annotations

import pytest

from tenfold.base.errors import EngineError, OutOfMemory
from tenfold.engines import xla


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 17 bytes\nand more"), OutOfMemory),
        (MemoryError(), OutOfMemory),
        (RuntimeError("INTERNAL: something else\nand more"), EngineError),
        (RuntimeError(""), EngineError),
    ],
)
def test_an_engines_exception_becomes_one_line_of_ours(error, expected):
    found = xla.translate(error)
    assert type(found) is expected and "\n" not in found.message
    assert xla.translate(found) is found
