"""What the tests of sizes that depend on data share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import tenfold as tn


def vectors(*counts: int) -> list[tuple[np.ndarray]]:
    """Vectors of six elements, of which so many are positive."""
    order = np.array([2, 0, 5, 1, 3, 4])
    return [(np.where(order < count, order + 1, -order - 1).astype(np.float32),) for count in counts]


def require_equal(
    function: Callable[..., Any], calls: Sequence[Sequence[np.ndarray]], apart: int = 0
) -> None:
    """Require what PyTorch gives for each call. So many programs must be for one size alone."""
    compiled = tn.compile(lambda *args: function(tn, *args))
    for arrays in calls:
        expected = function(torch, *[torch.from_numpy(each.copy()) for each in arrays])
        found = compiled(*[tn.tensor(each) for each in arrays])
        several = isinstance(expected, (tuple, list))
        for ours, theirs in zip(found, expected) if several else [(found, expected)]:
            assert tuple(ours.shape) == tuple(theirs.shape)
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
    assert compiled.programs.count == apart
