"""The windows of `tenfold.signal` are PyTorch's."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError

WINDOWS = [
    ("bartlett", {}),
    ("blackman", {}),
    ("cosine", {}),
    ("exponential", {"tau": 2.0}),
    ("gaussian", {"std": 0.7}),
    ("general_cosine", {"a": [0.4, 0.3, 0.2, 0.1]}),
    ("general_hamming", {"alpha": 0.6}),
    ("hamming", {}),
    ("hann", {}),
    ("kaiser", {"beta": 5.0}),
    ("nuttall", {}),
]


def test_every_window_is_pytorchs_symmetric_or_periodic():
    cases = [(*each, M, sym) for each in WINDOWS for M in (0, 1, 2, 7) for sym in (True, False)]
    ours = [
        getattr(tn.signal.windows, name)(M, sym=sym, dtype=tn.float64, **given)
        for name, given, M, sym in cases
    ]
    tn.eval(*ours)
    for (name, given, M, sym), found in zip(cases, ours, strict=True):
        expected = getattr(torch.signal.windows, name)(M, sym=sym, dtype=torch.float64, **given)
        torch.testing.assert_close(torch.tensor(found.numpy()), expected)


def test_a_periodic_exponential_may_have_its_center_elsewhere():
    found = tn.signal.windows.exponential(4, center=1, sym=False)
    expected = torch.signal.windows.exponential(4, center=1, sym=False)
    torch.testing.assert_close(torch.tensor(found.numpy()), expected)


def test_a_window_may_require_a_gradient():
    made = tn.signal.windows.hann(5, requires_grad=True)
    assert made.requires_grad and made.is_leaf


def test_what_no_window_is_made_of_is_refused():
    windows = tn.signal.windows
    with pytest.raises(ArgumentError, match="negative length"):
        windows.hann(-1)
    with pytest.raises(ArgumentError, match="not int64"):
        windows.hann(3, dtype=tn.int64)
    with pytest.raises(ArgumentError, match="tau=0 must be positive"):
        windows.exponential(3, tau=0)
    with pytest.raises(ArgumentError, match="center=1 cannot be given"):
        windows.exponential(3, center=1)
    with pytest.raises(ArgumentError, match="no coefficient"):
        windows.general_cosine(3, a=[])
