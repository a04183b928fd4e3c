"""Products of which parts are used: when there is a product for each, and that all stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.engines import numpy as tier0
from tenfold.flat import split_products
from tenfold.flat.data_ops import Slice
from tenfold.flat.structured import DotGeneral
from tenfold.nn import functional
from tenfold.runtime.calls import record_call
from tenfold.trace.lower import lower

WIDTH = 24


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(split_products, "LARGE", 1)
    monkeypatch.setattr(split_products, "NARROWEST", 2)


def programs(function, *shapes):
    """A function's program before and after, and values for its parameters."""
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    recording = record_call(function, tuple([tn.tensor(each) for each in arrays]), {}, tn.Tensor).recording
    program = lower(recording.trace)
    leaves = [random.normal(size=leaf.type.shape).astype(np.float32) for leaf in recording.trace.leaves]
    return program, split_products.products_apart(program), leaves


def count(program, kind):
    return sum([isinstance(op, kind) for op in program.ops])


def same(program, split, leaves):
    for found, expected in zip(tier0.run(split, leaves), tier0.run(program, leaves), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)


def attention(x, weight, bias):
    q, k, v = functional.linear(x, weight, bias).split(WIDTH, dim=-1)
    return functional.softmax(q @ k.mT, -1) @ v


def test_queries_keys_and_values_are_products_of_their_own():
    program, split, leaves = programs(attention, (2, 5, WIDTH), (3 * WIDTH, WIDTH), (3 * WIDTH,))
    assert count(split, DotGeneral) == count(program, DotGeneral) + 2
    wide = [op for op in split.ops if isinstance(op, Slice) and op.x.rank > 2]
    assert not wide  # only weights and biases are cut
    same(program, split, leaves)


def test_columns_of_a_weight_by_columns():
    function = lambda x, w: [part * 2 for part in (x @ w).chunk(2, -1)]
    program, split, leaves = programs(function, (4, WIDTH), (WIDTH, 10))
    assert count(split, DotGeneral) == 2
    same(program, split, leaves)


def test_a_part_that_nobody_uses_is_not_computed():
    program, split, leaves = programs(lambda x, w: ((x @ w)[:, :4], (x @ w)[:, 6:]), (4, WIDTH), (WIDTH, 10))
    same(program, split, leaves)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: [(y := x @ w)[:, :5], y[:, 5:], y.sum()],
        lambda x, w: [(y := x @ w)[:, :6], y[:, 4:]],
        lambda x, w: [(y := x @ w)[:, ::2], y[:, 1::2]],
        lambda x, w: [(y := x @ w)[:2], y[2:]],
        lambda x, w: [(y := (x @ w).relu())[:, :5], y[:, 5:]],
        lambda x, w: [(y := (x @ w))[:, :1], y[:, 1:]],
        lambda x, w: (y := x @ w, y[:, :5], y[:, 5:]),
    ],
    ids=["whole", "twice", "strided", "rows", "function", "narrow", "result"],
)
def test_other_uses_leave_one_product(function):
    program, split, _ = programs(function, (4, WIDTH), (WIDTH, 10))
    assert count(split, DotGeneral) == count(program, DotGeneral)


def test_what_is_added_in_another_place_stays():
    function = lambda x, w, y: [(z := x @ w + y)[:, :5], z[:, 5:]]
    program, split, _ = programs(function, (4, WIDTH), (WIDTH, 10), (4, 10))
    assert count(split, DotGeneral) == count(program, DotGeneral) == 1
