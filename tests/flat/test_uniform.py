"""Products by arrays of equal elements."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.uniform import multiplies_uniform


def program(right):
    """A matrix times what is made of a second one and a number."""
    x, y, number = [Value(TensorType(dtypes.float32, shape)) for shape in ((3, 3), (3, 3), ())]
    return Function([x, y, number], [flat.dot_general(x, right(y, number), ((1,), (0,)))])


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        (lambda y, number: flat.full((3, 3), 2.0, dtypes.float32), True),
        (lambda y, number: flat.broadcast_to(number, (3, 3)), True),
        (lambda y, number: flat.exp(flat.broadcast_to(number, (3, 3)) + 1.0), True),
        (lambda y, number: y, False),
        (lambda y, number: y + number, False),
        (lambda y, number: flat.iota((3, 3), 0, dtypes.float32), False),
    ],
)
def test_uniform_operands_are_found(right, expected):
    assert multiplies_uniform(program(right)) is expected


@pytest.mark.usefixtures("compiled_as_by_users")
@pytest.mark.parametrize(
    "product",
    [
        lambda a: a @ tn.ones(512, 512),
        lambda a: a @ a[0, 0].expand(512, 512),
        lambda a: tn.nn.functional.conv2d(a.reshape(4, 64, 32, 32), tn.ones(64, 64, 1, 1)),
    ],
    ids=["matrix", "number", "convolution"],
)
def test_sums_of_products_by_uniform_arrays_are_right(product, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")
    a = tn.tensor(np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32))
    expected = product(a).double().sum().item()
    assert tn.compile(lambda a: product(a).sum())(a).item() == pytest.approx(expected, rel=1e-3)
