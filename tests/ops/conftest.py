"""What the generated tests share. What they cost is XLA's compile, so LLVM's optimisations are left out, which
change no result and take half the time; `make test-all` compiles as users do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tenfold.engines import xla


@pytest.fixture(autouse=True)
def compiled_quickly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "not slow" in request.config.getoption("markexpr"):
        quick = ("xla_backend_optimization_level", 0)
        monkeypatch.setitem(xla.OPTIONS, "cpu", [*xla.OPTIONS["cpu"], quick])
    yield
