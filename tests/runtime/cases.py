"""Programs that are run by both libraries, and compiled or not, and must say the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tenfold as tn

WAYS = [pytest.param(tn.compile, id="compiled"), pytest.param(lambda function: function, id="lazy")]


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    return found == (pytest.approx(expected, rel=1e-5, abs=1e-7) if isinstance(expected, float) else expected)


def same(program: Any, wrap: Any) -> None:
    found, expected = program(tn, wrap), program(torch, lambda function: function)
    assert close(found, expected), f"{found} is not {expected}"
