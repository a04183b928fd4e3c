"""The gradient node: what lies on its path, what it shares with the forward pass, and when it is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import GradientError
from tenfold.trace.gradient import GradientNode, find_path, used_up
from tenfold.trace.graph import Node


def leaf(*values: float):
    return tn.tensor(values, requires_grad=True).eval()


def node_of(tensor) -> Node:
    node = tensor.current().origin.node
    assert node is not None
    return node


def test_the_path_leads_from_the_wanted_to_the_start_and_holds_nothing_else():
    w, other = leaf(1.0, 2.0), leaf(3.0, 4.0)
    inner = w * 2
    beside = other.exp()  # leads to the result, and not to what is wanted
    result = inner.sin() + beside
    path = find_path([result.current()], [w.current()], [])
    assert [node.callee.name for node in path] == ["mul", "sin", "add"]
    assert path[0] is node_of(inner) and path[-1] is node_of(result)


def test_the_path_ends_where_gradients_stop():
    w = leaf(1.0, 2.0)
    middle = w * 2
    result = middle.sin()
    assert find_path([result.current()], [w.current()], [middle.current()]) == []
    assert [node.callee.name for node in find_path([result.current()], [middle.current()], [])] == ["sin"]


def test_backward_is_one_node_over_the_nodes_between():
    w = leaf(1.0, 2.0)
    (w.exp() * w).sum().backward()
    node = w.grad.current().node
    assert isinstance(node, GradientNode)
    assert [each.callee.name for each in node.path] == ["exp", "mul", "sum"]


def test_values_of_the_forward_pass_are_not_computed_again():
    w = leaf(1.0, 2.0)
    w.exp().sum().backward()
    assert w.grad.show(stage="flat").count("ExponentialOp") == 1


def test_the_same_flow_is_one_program():
    def program():
        w = leaf(1.0, 2.0)
        (w * w).sum().backward()
        return w.grad.current().node.callee

    assert program() is program()


def test_cotangents_of_a_value_used_twice_add_up():
    w = leaf(0.5, -1.5)
    y = w.tanh()
    (y * y + y).sum().backward()
    expected = torch.tensor([0.5, -1.5], requires_grad=True)
    z = expected.tanh()
    (z * z + z).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), expected.grad.numpy(), rtol=1e-6)


def test_what_the_result_does_not_depend_on_has_no_gradient():
    w, unused = leaf(1.0), leaf(2.0)
    gradients = tn.autograd.grad((w * 3).sum(), [w, unused], allow_unused=True)
    assert gradients[0].tolist() == [3.0] and gradients[1] is None


def test_a_closed_gradient_can_be_differentiated_again():
    w = leaf(0.3, 0.7)
    (first,) = tn.autograd.grad(w.pow(3).sum(), w, create_graph=True)
    assert not isinstance(first.current().node, GradientNode)
    (second,) = tn.autograd.grad(first.sum(), w)
    np.testing.assert_allclose(second.numpy(), 6 * w.detach().numpy(), rtol=1e-6)


def test_a_batch_of_cotangents_is_one_program():
    w = leaf(0.3, 0.7, 1.1)
    y = w.sin()
    batch = tn.eye(3)
    (jacobian,) = tn.autograd.grad(y, w, batch, is_grads_batched=True)
    np.testing.assert_allclose(jacobian.numpy(), np.diag(np.cos(w.detach().numpy())), rtol=1e-6)


def test_a_second_gradient_is_refused_where_the_first_needed_values():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    loss.backward()
    with pytest.raises(GradientError, match="taken a second time"):
        loss.backward()


def test_a_second_gradient_is_allowed_where_the_first_needed_nothing():
    w = leaf(1.0, 2.0)
    total = w.sum()
    total.backward()
    assert not used_up(node_of(total))
    total.backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_an_operand_that_the_gradient_needs_may_not_be_overwritten():
    w = leaf(1.0, 2.0)
    x = w * 1
    y = x * x
    x.add_(1)
    with pytest.raises(GradientError, match="written in place after it was used"):
        y.sum().backward()


def test_a_result_that_the_gradient_needs_may_not_be_overwritten():
    w = leaf(1.0, 2.0)
    y = w.exp()
    y.mul_(2)
    with pytest.raises(GradientError, match="written in place"):
        y.sum().backward()


def test_an_op_may_overwrite_its_own_operand():
    w = leaf(-1.0, 2.0)
    y = w * 1
    y.relu_()
    y.sum().backward()
    assert w.grad.tolist() == [0.0, 1.0]


def _slopes(t, times):
    """The function, and its gradients one after the other: it writes what the op that writes has saved."""
    x = t.tensor([0.3, -0.7, 1.2], requires_grad=True)
    y = (x * 2).clone()
    y.mul_(x)
    found = y.sin().sum()
    for _ in range(times):
        (slope,) = t.autograd.grad(found, x, create_graph=True)
        found = slope.sum()
    return slope.tolist()


@pytest.mark.parametrize("times", [1, 2, 3])
def test_gradients_of_gradients_pass_a_write_that_saved_what_it_wrote(times):
    assert _slopes(tn, times) == pytest.approx(_slopes(torch, times), rel=1e-5)


def test_a_write_after_a_gradient_is_refused_where_its_gradient_needs_what_was_there():
    x = tn.tensor([0.3, -0.7], requires_grad=True)
    y = (x * 2).clone()
    z = y.sin()
    (slope,) = tn.autograd.grad(z.sum(), x, create_graph=True)
    y.mul_(x)
    with pytest.raises(GradientError, match="written in place"):
        tn.autograd.grad(slope.sum(), x)
