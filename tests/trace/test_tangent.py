"""Tangents of single nodes: which results have one, and that they are computed with the node's own values."""

from __future__ import annotations

import numpy as np
import torch

import tenfold as tn
from tenfold.trace.graph import Value
from tenfold.trace.tangent import push


def along(tensor) -> Value:
    return tn.ones_like(tensor).current()


def values_of(value) -> np.ndarray:
    return tn.Tensor(value).numpy()


def test_the_tangent_of_a_result_is_that_of_its_operand_times_the_derivative():
    x = tn.tensor([0.1, 0.5, -2.0]).eval()
    (tangent,) = push(x.sin().current().node, [along(x)])
    np.testing.assert_allclose(values_of(tangent), np.cos([0.1, 0.5, -2.0]), rtol=1e-6)


def test_operands_without_a_tangent_are_constants():
    x, y = tn.tensor([2.0, 3.0]).eval(), tn.tensor([5.0, 7.0]).eval()
    node = (x * y).current().node
    first, second, both = (
        push(node, [along(x), None]),
        push(node, [None, along(y)]),
        push(node, [along(x)] * 2),
    )
    assert [values_of(one).tolist() for (one,) in (first, second, both)] == [[5, 7], [2, 3], [7, 10]]


def test_a_result_that_is_no_differentiable_number_has_none():
    x = tn.tensor([1.0, 3.0, 2.0]).eval()
    values, indices = push(x.sort().values.current().node, [along(x)])
    assert values_of(values).tolist() == [1.0, 1.0, 1.0] and indices is None


def test_a_node_whose_results_do_not_move_needs_no_program():
    x = tn.tensor([1.0, 3.0, 2.0]).eval()
    assert push(x.argmax().current().node, [along(x)]) == [None]


def test_the_same_op_moves_by_one_program():
    x = tn.tensor([1.0, 3.0]).eval()
    (first,), (second,) = (push(x.cosh().current().node, [along(x)]) for _ in range(2))
    assert first.node.callee is second.node.callee


def test_random_numbers_are_drawn_once_for_value_and_tangent():
    with tn.autograd.forward_ad.dual_level():
        x = tn.autograd.forward_ad.make_dual(tn.ones(64), tn.full((64,), 3.0))
        primal, tangent = tn.autograd.forward_ad.unpack_dual(tn.nn.functional.dropout(x, 0.5))
    kept = primal.numpy() != 0
    assert 0 < kept.sum() < 64
    np.testing.assert_array_equal(tangent.numpy(), np.where(kept, 6.0, 0.0).astype(np.float32))


def test_tangents_of_gradients_are_second_derivatives():
    def derivative(m, f):
        data = m.tensor([0.2, -0.4, 1.5])
        return f(data, m.ones(3)).numpy()

    def second(m):
        def run(x, v):
            return m.func.jvp(m.func.grad(lambda x: (x.sin() * x.exp()).sum()), (x,), (v,))[1]

        return run

    np.testing.assert_allclose(derivative(tn, second(tn)), derivative(torch, second(torch)), rtol=1e-5)
