"""Python's operators on tensors, and on tensors beside arrays, numbers and other types, as PyTorch's."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tests.tensor.both import agree, cases, compute_together

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


AUGMENTED = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "/": operator.itruediv,
    "//": operator.ifloordiv,
    "%": operator.imod,
    "**": operator.ipow,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
    "<<": operator.ilshift,
    ">>": operator.irshift,
}


TENSORS: dict[str, Callable[[Any], Any]] = {
    "int64": lambda L: L.tensor([7, -3, 2]),
    "uint8": lambda L: L.tensor([7, 250, 2], dtype=L.uint8),
    "float32": lambda L: L.tensor([7.5, -3.0, 0.25]),
    "bool": lambda L: L.tensor([True, True, True]),
}


OTHERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda L: 3,
    "float": lambda L: 2.5,
    "bool": lambda L: True,
    "complex": lambda L: 1j,
    "numpy int": lambda L: np.int64(3),
    "numpy float": lambda L: np.float64(2.5),
    "tensor": lambda L: L.tensor([1, 2, 3]),
    "number in a tensor": lambda L: L.tensor(2.0),
    "array": lambda L: np.array([1.0, 2.0, 3.0]),
    "list": lambda L: [1, 2, 3],
    "text": lambda L: "a",
    "None": lambda L: None,
    "another type": lambda L: object(),
}


# (other, operator, dtype) where we differ on purpose:
# PyTorch divides an array by a tensor, though it adds none to it; and compares one with != by identity.
UNLIKE = {("array", symbol, dtype) for symbol in ("/", "!=") for dtype in TENSORS}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_operators(other):
    calls, put = [], OTHERS[other]
    for (symbol, operate), (dtype, make) in ((a, b) for a in OPERATORS.items() for b in TENSORS.items()):
        if (other, symbol, dtype) in UNLIKE:
            continue
        calls.append((f"{dtype} {symbol} {other}", lambda L, f=operate, m=make: f(m(L), put(L))))
        calls.append((f"{other} {symbol} {dtype}", lambda L, f=operate, m=make: f(put(L), m(L))))
    compute_together(calls)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_augmented_operators(other):
    calls, put = [], OTHERS[other]
    for (symbol, operate), (dtype, make) in ((a, b) for a in AUGMENTED.items() for b in TENSORS.items()):
        if (other, symbol, dtype) in UNLIKE:
            continue
        calls.append((f"{dtype} {symbol}= {other}", lambda L, f=operate, m=make: f(m(L), put(L))))
    compute_together(calls)


@cases(
    "L.ones(2, 2) @ L.ones(2)",
    "L.ones(2) @ L.ones(2)",
    "L.ones(2, 2) @ 2",
    "L.ones(2, 2) @ np.ones((2, 2))",
    "operator.imatmul(L.ones(2, 2), L.ones(2, 2))",
    "-L.tensor([1, -2])",
    "-L.tensor([True])",
    "+L.tensor([1.0])",
    "+L.tensor([True])",
    "abs(L.tensor([-1.5]))",
    "~L.tensor([1, 2])",
    "~L.tensor([True])",
    "~L.tensor([1.0])",
    "L.tensor([True]) - L.tensor([True])",
    "divmod(L.tensor([7]), 2)",
    "L.tensor([1]) + 2**63",
    "L.tensor([1, 2]) ** -1",
    "np.exp(L.tensor([0.0]))",
    "np.add(L.tensor([1.0]), 1)",
    "np.asarray(L.tensor([1, 2])).tolist()",
    "np.array(L.tensor([1, 2]), dtype=np.float32).tolist()",
    "np.stack([L.tensor([1]), L.tensor([2])]).tolist()",
    "float(np.sum(np.asarray(L.tensor([1.0, 2.0]))))",
)
@pytest.mark.filterwarnings("ignore")
def test_other_operators_and_numpy(call):
    agree(call)


class Friend:
    """A type that knows what to do with tensors."""

    def __radd__(self, other):
        return "added"

    def __rmatmul__(self, other):
        return "multiplied"

    def __eq__(self, other):
        return "compared"

    def __gt__(self, other):
        return "greater"

    __hash__ = None


@cases(
    "L.ones(2) + F",
    "L.ones(2) @ F",
    "L.ones(2) == F",
    "L.ones(2) < F",
    "F == L.ones(2)",
    "operator.iadd(L.ones(2), F)",
)
def test_another_type_may_know_what_to_do(call):
    call.__globals__["F"] = Friend()
    agree(call)


def test_an_array_compares_element_by_element():
    x, array = tn.tensor([1, 2, 3]), np.array([1, 0, 3])
    assert (x != array).tolist() == (array != x).tolist() == [False, True, False]
    assert (x / array[:1]).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "operate", [lambda x, y: x % y, lambda x, y: x**y, lambda x, y: x & y, lambda x, y: x << y]
)
def test_operators_on_tensors_of_no_dimensions_are_those_of_tensors(operate):
    pairs = [(tn.tensor(7), tn.tensor(2, dtype=tn.int32)), (tn.tensor(7, dtype=tn.int32), tn.tensor(2))]
    for x, y in pairs:
        theirs = operate(torch.tensor(x.item(), dtype=getattr(torch, x.dtype.name)),
                         torch.tensor(y.item(), dtype=getattr(torch, y.dtype.name)))  # fmt: skip
        assert str(theirs.dtype) == f"torch.{operate(x, y).dtype.name}"
        assert tn.compile(operate)(x, y).item() == theirs.item()
