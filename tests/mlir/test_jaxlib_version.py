"""The versions of jaxlib that Tenfold runs on."""

from __future__ import annotations

import sys

import jaxlib.version
import pytest

from tenfold.base.errors import MissingEngine
from tenfold.mlir import stablehlo


@pytest.mark.parametrize("version", ["0.9.2", "0.12.0", "1.0.0"])
def test_a_jaxlib_of_another_version_is_refused(version, monkeypatch):
    monkeypatch.setattr(jaxlib.version, "__version__", version)
    with pytest.raises(
        MissingEngine, match=rf"jaxlib {version} is not one that this Tenfold knows"
    ) as raised:
        stablehlo.jaxlib_version.__wrapped__()
    assert raised.value.help == "pip install 'jaxlib>=0.10,<0.12'"


@pytest.mark.parametrize("version", ["0.10.2", "0.11.0", "0.11.2.dev20260101"])
def test_jaxlibs_of_versions_that_are_known(version, monkeypatch):
    monkeypatch.setattr(jaxlib.version, "__version__", version)
    assert stablehlo.jaxlib_version.__wrapped__() == version


def test_without_jaxlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib.version", None)
    with pytest.raises(
        MissingEngine, match="StableHLO and XLA need jaxlib, which cannot be imported"
    ) as raised:
        stablehlo.jaxlib_version.__wrapped__()
    assert isinstance(raised.value, ImportError)
    assert raised.value.help == "pip install 'jaxlib>=0.10,<0.12'"
