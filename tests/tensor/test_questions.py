"""Properties of a tensor that need no computation, of every kind of view, as PyTorch answers."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn
from tests.tensor.both import cases, compute_together, outcome

PROPERTIES = [
    "ndim", "itemsize", "nbytes", "is_cuda", "is_cpu", "is_leaf", "grad", "requires_grad", "shape",
    "T", "mT", "H", "real",
]  # fmt: skip


METHODS = [
    "dim", "ndimension", "numel", "nelement", "element_size", "size", "stride", "storage_offset",
    "is_contiguous", "is_floating_point", "is_complex", "is_signed", "get_device",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16"])
@pytest.mark.filterwarnings("ignore")
def test_properties_and_plain_methods(dtype):
    views = {
        "dense": lambda L: L.zeros(2, 3, dtype=getattr(L, dtype)),
        "transposed": lambda L: L.zeros(2, 3, dtype=getattr(L, dtype)).t(),
        "a part": lambda L: L.zeros(4, 4, dtype=getattr(L, dtype))[1:3, 2:],
        "empty": lambda L: L.zeros(0, 3, dtype=getattr(L, dtype)),
    }
    calls = [(f"{v} {p}", lambda L, m=m, p=p: getattr(m(L), p)) for v, m in views.items() for p in PROPERTIES]
    calls += [
        (f"{v} {p}()", lambda L, m=m, p=p: getattr(m(L), p)()) for v, m in views.items() for p in METHODS
    ]
    compute_together(calls)
    assert str(tn.zeros(1).device) == str(torch.zeros(1).device)
    assert tn.zeros(1).layout == "strided"


@cases(
    "L.zeros(2, 3).size(1)",
    "L.zeros(2, 3).size(-3)",
    "L.zeros(2, 3).stride(-1)",
    "L.zeros(2, 3).stride(2)",
    "L.tensor([1.0]).imag",
    "L.tensor([1 + 2j]).imag",
    "L.zeros(2).nope",
    "hasattr(L.zeros(2), 'nope')",
)
def test_properties_that_may_fail(call):
    ours, theirs = outcome(tn, call), outcome(torch, call)
    assert isinstance(ours, Exception) == isinstance(theirs, Exception)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs))
    else:
        assert ours == theirs
