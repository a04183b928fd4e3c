"""Reductions and normalisations under a mask are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError

VALUES = np.array([[1.0, -2.5, 3.0, 0.5], [4.0, 1.5, -1.0, 2.0], [0.25, 2.0, 1.0, -3.0]], np.float32)
# Of the last row nothing counts.
MASK = np.array([[True, False, True, True], [False, True, True, False], [False] * 4])
REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "logsumexp", "norm", "var", "std"]
ALONG = ["cumsum", "cumprod", "argmax", "argmin", "median", "softmax", "log_softmax", "softmin"]
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((name, (), {}) for name in REDUCTIONS),
    *((name, (), {"dim": 1}) for name in REDUCTIONS + ALONG),
    *((name, (), {"dim": (0, -1), "keepdim": True}) for name in REDUCTIONS),
    ("norm", (float("-inf"), 1), {}),
    ("norm", (3,), {"dim": 0, "dtype": "float64"}),
    ("var", (1, False), {}),
    ("std", (), {"dim": 1, "correction": 2}),
    ("normalize", (2.0, 1), {}),
    ("argmax", (), {"dtype": "int64"}),
]


def both(module: Any, call: tuple[str, tuple[Any, ...], dict[str, Any]], tensor: Any, mask: Any) -> Any:
    name, args, kwargs = call
    given = {k: getattr(module, v) if isinstance(v, str) else v for k, v in kwargs.items()}
    return getattr(module.masked, name)(tensor, *args, **given, mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_only_elements_under_the_mask_count(dtype):
    values = VALUES.astype(dtype) * (1 + 1j if dtype == "complex64" else 1)
    ours, theirs = [], []
    for call in CALLS:
        # One that is broadcast, and none, where a call is plainest.
        for mask in (MASK, MASK[1], None) if call[2] == {"dim": 1} else (MASK,):
            try:
                expected = both(
                    torch, call, torch.tensor(values), None if mask is None else torch.tensor(mask)
                )
            except (RuntimeError, NotImplementedError, ValueError, TypeError, AssertionError, IndexError):
                continue
            theirs.append(((call, mask is not None), expected))
            ours.append(both(tn, call, tn.tensor(values), None if mask is None else tn.tensor(mask)))
    tn.eval(*ours)
    assert len(ours) > 40
    for (call, expected), found in zip(theirs, ours, strict=True):
        assert found.dtype.name == str(expected.dtype).removeprefix("torch."), call
        torch.testing.assert_close(
            torch.tensor(found.numpy()),
            expected,
            equal_nan=True,
            msg=lambda text, call=call: f"{call} {text}",
        )


def test_each_operand_of_logaddexp_has_its_mask():
    x, y = VALUES, VALUES[::-1].copy()
    found = tn.masked.logaddexp(
        tn.tensor(x), tn.tensor(y), input_mask=tn.tensor(MASK), other_mask=tn.tensor(~MASK)
    )
    expected = torch.masked.logaddexp(
        torch.tensor(x), torch.tensor(y), input_mask=torch.tensor(MASK), other_mask=torch.tensor(~MASK)
    )
    torch.testing.assert_close(torch.tensor(found.numpy()), expected)


def test_what_a_mask_cannot_do_is_refused():
    x, mask = tn.tensor(VALUES), tn.tensor(MASK)
    with pytest.raises(IndexOutOfRange, match="mask of 2 dimensions"):
        tn.masked.sum(x[0], mask=mask)
    with pytest.raises(ShapeError, match="twice"):
        tn.masked.sum(x, (0, -2))
    with pytest.raises(DTypeError, match="a mean is no int32"):
        tn.masked.mean(x.int())
    with pytest.raises(ArgumentError, match="a slice has no element"):
        tn.masked.median(x.int(), mask=mask)
    with pytest.raises(ArgumentError, match="give one of them"):
        tn.masked.var(x, unbiased=True, correction=1)


def test_products_over_an_empty_list_of_dimensions_keep_every_element():
    values, mask = np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3) > 2
    for dim in ([], (), None):
        ours = tn.masked.prod(tn.tensor(values), dim, mask=tn.tensor(mask))
        theirs = torch.masked.prod(torch.tensor(values), dim, mask=torch.tensor(mask))
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
