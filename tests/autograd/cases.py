"""What the tests of gradients share: a case runs with Tenfold and with PyTorch, and must agree, or be refused
by both."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn

DATA = [[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]]


def both(case):
    """What a case gives with Tenfold and with PyTorch: lists of arrays."""
    results = []
    for module in (tn, torch):
        found = case(module)
        results.append([None if each is None else np.asarray(each.detach().numpy()) for each in found])
    return results


def agree(case):
    ours, theirs = both(case)
    assert len(ours) == len(theirs)
    for mine, golden in zip(ours, theirs, strict=True):
        if golden is None:
            assert mine is None
        else:
            np.testing.assert_allclose(mine, golden, rtol=1e-5, atol=1e-6)


def refused(case):
    """A case that neither takes."""
    with pytest.raises((RuntimeError, TypeError)):
        case(torch)
    with pytest.raises(tn.TenfoldError):
        case(tn)


def leaf(m, data=DATA):
    return m.tensor(data, requires_grad=True)
