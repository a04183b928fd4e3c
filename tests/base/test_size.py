"""Shapes answer as PyTorch's `torch.Size`."""

import operator

import pytest
import torch

import tenfold as tn

EXPRESSIONS = {
    "a number of elements": lambda L: L.Size([2, 3, 4]).numel(),
    "of none": lambda L: L.Size([]).numel(),
    "with an empty dimension": lambda L: L.Size([2, 0]).numel(),
    "a sum": lambda L: L.Size([2]) + (3, 4),
    "a sum with a list's entries": lambda L: L.Size([2]) + L.Size([3]),
    "repeated": lambda L: L.Size([2, 3]) * 2,
    "repeated from the left": lambda L: 2 * L.Size([2, 3]),
    "a slice": lambda L: L.Size([2, 3, 4])[1:],
    "an entry": lambda L: L.Size([2, 3, 4])[-1],
    "equal to a tuple": lambda L: L.Size([2, 3]) == (2, 3),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_it_answers_as_pytorch(name):
    ours, theirs = EXPRESSIONS[name](tn), EXPRESSIONS[name](torch)
    assert repr(ours) == repr(theirs).replace("torch", "tenfold") and ours == theirs
    assert type(ours).__name__ == type(theirs).__name__


def test_it_is_a_tuple_that_hashes_as_one():
    assert isinstance(tn.Size([2]), tuple) and {(2, 3): 1}[tn.Size([2, 3])] == 1
    with pytest.raises(IndexError):
        operator.getitem(tn.Size([2]), 1)
