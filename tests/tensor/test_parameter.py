"""Parameters: what memory they share, and what a copy of one begins with."""

import copy

import pytest
import torch

import tenfold as tn


@pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])
def test_a_parameter_shares_the_memory_of_its_data_and_not_its_history(L):
    x = L.ones(3, requires_grad=True)
    y = x * 2
    parameter = L.nn.Parameter(y)
    assert parameter.is_leaf and parameter.requires_grad and parameter.grad_fn is None
    with L.no_grad():
        parameter.zero_()
    assert y.tolist() == [0, 0, 0]
    assert not L.nn.Parameter(y, requires_grad=False).requires_grad
    assert L.nn.Parameter().numel() == 0
    assert repr(L.nn.Parameter(L.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_a_copied_parameter_begins_without_a_gradient():
    parameter = tn.nn.Parameter(tn.ones(2))
    (parameter * 2).sum().backward()
    again = copy.deepcopy(parameter)
    assert type(again) is tn.nn.Parameter and again.grad is None and again.requires_grad
    assert parameter.grad.tolist() == [2, 2] and again.tolist() == [1, 1]


def test_a_parameter_is_made_of_a_tensor():
    with pytest.raises(tn.ArgumentError, match="is made of a Tensor, not of a list"):
        tn.nn.Parameter([1.0])
