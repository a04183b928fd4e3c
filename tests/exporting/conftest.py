"""What the tests of exported programs share."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold import nn


@pytest.fixture(scope="module")
def model() -> nn.Module:
    tn.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 3)).eval()


@pytest.fixture(scope="module")
def x() -> tn.Tensor:
    return tn.rand(2, 4).eval()
