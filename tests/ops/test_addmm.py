"""Factors of added products: what PyTorch refuses for the tensors' dtype is refused, and not rounded."""

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


@pytest.mark.parametrize("package", [tn, torch])
@pytest.mark.parametrize("factor", ["beta", "alpha"])
@pytest.mark.parametrize(
    "dtype, number", [("uint8", 300), ("uint8", -1.5), ("int32", 2**40), ("int64", 2**63)]
)
@pytest.mark.parametrize(
    "name, sizes",
    [
        ("addr", [(2, 2), (2,), (2,)]),
        ("addmm", [(2, 2), (2, 3), (3, 2)]),
        ("addmv", [(2,), (2, 3), (3,)]),
        ("addbmm", [(2, 2), (4, 2, 3), (4, 3, 2)]),
        ("baddbmm", [(4, 2, 2), (4, 2, 3), (4, 3, 2)]),
    ],
)
def test_a_factor_beyond_the_integers_of_the_dtype_is_refused(package, name, sizes, dtype, number, factor):
    operands = [package.ones(*size, dtype=getattr(package, dtype)) for size in sizes]
    with pytest.raises(RuntimeError):
        getattr(package, name)(*operands, **{factor: number})
