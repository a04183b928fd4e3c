"""The factors of `addr`: what PyTorch refuses for the tensors' dtype is refused, and not rounded."""

import pytest
import torch

import tenfold as tn


@pytest.mark.parametrize("package", [tn, torch])
@pytest.mark.parametrize(
    "dtype, factors",
    [
        ("int64", {"alpha": 0.5}),
        ("int64", {"beta": 2.0}),
        ("float32", {"beta": True}),
        ("float32", {"alpha": True}),
        ("float32", {"alpha": 1j}),
    ],
)
def test_addr_refuses_a_factor_that_its_dtype_cannot_hold(package, dtype, factors):
    kind = getattr(package, dtype)
    with pytest.raises(RuntimeError):
        package.addr(*[package.ones(*size, dtype=kind) for size in ((2, 2), (2,), (2,))], **factors)
