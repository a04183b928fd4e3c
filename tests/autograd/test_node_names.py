"""`grad_fn.name()` is what PyTorch calls the node."""

import pytest
import torch

import tenfold as tn

CALLS = {
    "MulBackward0": lambda x: x * x,
    "AddBackward0": lambda x: x + 1,
    "SumBackward0": lambda x: x.sum(),
    "SumBackward1": lambda x: x.sum(0),
    "MeanBackward1": lambda x: x.mean(0),
    "LogSoftmaxBackward0": lambda x: x.log_softmax(0),
    "MvBackward0": lambda x: x @ x[0],
    "MmBackward0": lambda x: x @ x,
    "TBackward0": lambda x: x.t(),
    "ReluBackward0": lambda x: x.relu(),
    "MulBackward0 of an alias": lambda x: x.multiply(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_name_of_a_node_is_pytorchs(name):
    for L in (tn, torch):
        assert CALLS[name](L.ones(2, 2, requires_grad=True)).grad_fn.name() == name.split()[0]
