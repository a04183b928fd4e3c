"""What tests of layers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import tenfold as tn


@pytest.fixture
def float64() -> Iterator[None]:
    """Both libraries make tensors of float64, so that rounding hides no difference."""
    torch.set_default_dtype(torch.float64)
    tn.set_default_dtype(tn.float64)
    yield
    torch.set_default_dtype(torch.float32)
    tn.set_default_dtype(tn.float32)
