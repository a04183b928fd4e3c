"""The settings of XLA by which tests compile quickly: they change no result."""

from __future__ import annotations

import pytest

from tenfold.engines.xla import HASTY

__all__ = ["QUICK", "compiles_quickly", "xla_flags"]

QUICK = tuple(HASTY)


def compiles_quickly(config: pytest.Config) -> bool:
    """Whether this run does so: where it leaves out the slow tests."""
    return "not slow" in config.getoption("markexpr")


def xla_flags(config: pytest.Config) -> dict[str, str]:
    """The environment of a process that compiles as this one does."""
    options = QUICK if compiles_quickly(config) else []
    return {"XLA_FLAGS": " ".join(f"--{name}={str(value).lower()}" for name, value in options)}
