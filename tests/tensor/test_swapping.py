"""`utils.swap_tensors`: two tensors change places."""

import pytest
import torch

import tenfold as tn


def swapped(t):
    """What two parameters are after a swap, one of which has a view, a gradient and an attribute."""
    first = t.nn.Parameter(t.tensor([1.0, 2.0]))
    second = t.nn.Parameter(t.tensor([3.0, 4.0, 5.0]))
    (first * first).sum().backward()
    first.label = "first"
    t.utils.swap_tensors(first, second)
    (second * 3).sum().backward()
    with t.no_grad():
        second.view(-1)[0] = 7.0
    return first.tolist(), second.tolist(), second.label, first.grad, second.grad.tolist()


def test_values_attributes_and_gradients_change_places():
    assert swapped(tn) == swapped(torch)


def test_a_module_and_its_optimizer_see_the_tensor_that_came():
    layer = tn.nn.Linear(2, 1, bias=False)
    optimizer = tn.optim.SGD(layer.parameters(), lr=1.0)
    tn.utils.swap_tensors(layer.weight, tn.nn.Parameter(tn.tensor([[2.0, 3.0]])))
    layer(tn.ones(2)).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() == [[1.0, 2.0]]


def test_a_compiled_function_swaps_nothing():
    with pytest.raises(tn.TraceError, match="cannot swap"):
        tn.compile(lambda x, y: tn.utils.swap_tensors(x, y))(tn.ones(2), tn.ones(3))
