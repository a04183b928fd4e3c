"""Names of older programs: `Variable`, and a switch for threads."""

import pytest
import torch

import tenfold as tn


@pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])
def test_a_variable_is_a_tensor_that_shares_its_data(L):
    x = L.ones(2)
    variable = L.autograd.Variable(x, requires_grad=True)
    assert isinstance(x, L.autograd.Variable) and not isinstance(2, L.autograd.Variable)
    (variable * 3).sum().backward()
    assert variable.grad.tolist() == [3, 3] and not x.requires_grad
    x.zero_()
    assert variable.tolist() == [0, 0]
    assert not L.autograd.Variable(x).requires_grad


def test_a_variable_is_made_of_a_tensor():
    with pytest.raises(tn.ArgumentError, match="takes a Tensor, not list"):
        tn.autograd.Variable([1.0])


def test_the_switch_for_threads_changes_nothing():
    with tn.autograd.set_multithreading_enabled(False) as nothing:
        x = tn.ones(2, requires_grad=True)
        x.sum().backward()
    assert nothing is None and x.grad.tolist() == [1, 1]
