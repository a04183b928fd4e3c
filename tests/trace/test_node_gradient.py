"""The gradient of a single node: what must be saved for it, and what it gives on values packed away."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.trace.node_gradient import derived_of, pull, saved_of, wanted_of


def leaf(*values: float):
    return tn.tensor(values, requires_grad=True).eval()


def node_of(tensor):
    return tensor.current().origin.node


def pulled(node, cotangents, inputs, saved):
    with tn.no_grad():
        results = pull(node, [one.current() for one in cotangents], node.source, inputs, saved)
    return [None if result is None else tn.Tensor(result).tolist() for result in results]


@pytest.mark.parametrize(
    ("op", "inputs", "results"),
    [
        (lambda x: x.sin(), [0], []),
        (lambda x: x.exp(), [], [0]),
        (lambda x: x + 1, [], []),
        (lambda x: x.reshape(3, 1), [], []),
        (lambda x: x * tn.tensor([1.0, 2.0, 3.0]).eval(), [1], []),
    ],
    ids=["sin", "exp", "add", "reshape", "mul by a constant"],
)
def test_what_the_gradient_of_an_op_needs(op, inputs, results):
    assert saved_of(node_of(op(leaf(0.1, 0.2, 0.3)))) == (inputs, results)


def test_a_factor_without_a_gradient_is_saved_and_the_other_is_not():
    x, factor = leaf(2.0), tn.tensor([5.0]).eval()
    node = node_of(x * factor)
    assert wanted_of(node) == (True, False)
    assert saved_of(node) == ([1], [])


def test_data_that_is_only_moved_is_what_its_input_holds():
    x = leaf(1.0, 2.0, 3.0)
    moved = x.reshape(3, 1) * leaf(4.0, 5.0)  # broadcast on the way
    assert derived_of(node_of(moved)) == set()
    assert derived_of(node_of(tn.nn.functional.layer_norm(x, (3,)))) == {0}  # its mean and deviation


def test_a_gradient_is_computed_on_the_values_that_it_is_offered():
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    node = node_of(x * y)
    others = [tn.tensor([1.0, 2.0]).eval().current(), tn.tensor([3.0, 4.0]).eval().current()]
    assert pulled(node, [tn.ones(2)], others, {}) == [[3.0, 4.0], [1.0, 2.0]]


def test_a_saved_result_is_used_instead_of_being_computed():
    x = leaf(0.0, 1.0)
    node = node_of(x.exp())
    instead = tn.tensor([10.0, 20.0]).eval().current()
    assert pulled(node, [tn.ones(2)], [x.current()], {0: instead}) == [[10.0, 20.0]]


def test_an_input_that_gradients_do_not_flow_to_has_none():
    x = leaf(2.0)
    node = node_of(x * tn.tensor([5.0]).eval())
    assert pulled(node, [tn.ones(1)], list(node.inputs), {}) == [[5.0], None]


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: m.nn.functional.layer_norm(x, (3,)),
        lambda m, x: m.nn.functional.gelu(x),
        lambda m, x: x.softmax(-1) @ x.t(),
        lambda m, x: x.max(dim=1).values,
        lambda m, x: x.cumsum(0).prod(1),
    ],
    ids=["layer_norm", "gelu", "softmax and product", "max", "scan and product"],
)
def test_with_everything_packed_away_gradients_are_pytorchs(function):
    data = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]

    def gradient(m):
        x = m.tensor(data, requires_grad=True)
        with m.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), m.from_numpy):
            y = function(m, x)
        y.square().sum().backward()
        return x.grad.numpy()

    np.testing.assert_allclose(gradient(tn), gradient(torch), rtol=1e-5, atol=1e-6)
