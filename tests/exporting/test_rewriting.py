"""Recorded programs, rewritten for a dialect that lacks some of their ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.engines import numpy as tier0
from tenfold.exporting.rewriting import Expansions, rewritten
from tenfold.func.control_flow import cond, while_loop
from tenfold.runtime.calls import record_call
from tenfold.trace.collect import Trace
from tenfold.trace.context import context
from tenfold.trace.control import ControlNode, Part
from tenfold.trace.graph import Node
from tenfold.trace.lower import lower
from tenfold.trace.numbers import Numbers

X = np.array([0.5, -1.0, 2.0], np.float32)


def program(function: Callable[..., Any], *tensors: tn.Tensor, numbers: bool = False) -> Trace:
    given = {"numbers": Numbers()} if numbers else {}
    return record_call(function, tensors or (tn.tensor(X),), {}, tn.Tensor, **given).recording.trace


def everything(trace: Trace, expansions: Expansions) -> Trace:
    return rewritten(trace, {}, range(len(trace.outputs)), expansions)


def names(trace: Trace) -> list[str]:
    return [node.callee.qualified for node in trace.nodes]


def run(trace: Trace, *arrays: np.ndarray) -> list[np.ndarray]:
    return tier0.run(lower(trace), list(arrays or (X,)))


def parts(node: Node) -> Sequence[Part]:
    return node.parts if isinstance(node, ControlNode) else ()


SINH: Expansions = {"sinh": lambda self: [(self.exp() - (-self).exp()) / 2]}


def test_an_op_is_written_in_others_in_its_place():
    trace = program(lambda x: (x.sinh() + 1).tanh())
    found = everything(trace, SINH)
    assert names(found) == ["exp", "neg", "exp", "sub.Tensor", "div.Scalar", "add.Scalar", "tanh"]
    assert {node.source.line for node in found.nodes[:5]} == {trace.nodes[0].source.line}
    np.testing.assert_allclose(run(found)[0], np.tanh(np.sinh(X) + 1), rtol=1e-6)
    assert found.leaves == trace.leaves and found.key == trace.key


def test_a_program_without_such_an_op_stays_the_same_one():
    trace = program(lambda x: x.tanh())
    assert everything(trace, SINH) is trace
    assert everything(trace, {}) is trace


def test_results_that_are_not_asked_for_go_with_what_only_they_read():
    trace = program(lambda x, y: (x.exp(), y.tanh(), x), tn.ones(3), tn.ones(2))
    found = rewritten(trace, {}, [2, 0], {})
    assert found.outputs == [(-1, 0), (0, 0)]
    assert run(found, X, np.ones(2, np.float32))[0] is not None
    assert [leaf.type.shape for leaf in found.leaves][:1] == [(3,)]


def test_a_leaf_that_is_full_of_one_number_is_made_by_an_op():
    ones = tn.full((3,), 7.0).eval()
    trace = program(lambda x: x * ones + ones)
    (leaf,) = [leaf for leaf in trace.leaves if leaf.buffer is not None]
    found = rewritten(trace, {leaf: 7.0}, [0], {})
    assert names(found) == ["full", "mul.Tensor", "add.Tensor"]
    assert len(found.leaves) == 1
    np.testing.assert_allclose(run(found)[0], X * 7 + 7)


def test_choices_and_loops_are_rewritten_inside_where_they_need_it():
    def function(x):
        y = cond(x.sum() > 0, lambda x: x.sinh(), lambda x: x - 1, (x,))
        return while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y.sinh()), (0, y))[1]

    trace = program(function)
    found = everything(trace, SINH)
    inside = [
        name for node in found.nodes for part in getattr(node, "parts", ()) for name in names(part.trace)
    ]
    assert "sinh" not in inside and inside.count("neg") == 2
    kept = [part for old, new in zip(trace.nodes, found.nodes) if hasattr(old, "parts") for part in new.parts]
    assert any(part in old.parts for part in kept for old in trace.nodes if hasattr(old, "parts"))
    np.testing.assert_allclose(run(found)[0], np.sinh(np.sinh(np.sinh(X))), rtol=1e-5)


def test_an_op_with_several_results_keeps_their_order():
    expansions = {"sort": lambda self, dim, descending: [self * 0 + 9, self.argsort(dim)]}
    found = everything(program(lambda x: (lambda v, i: (i, v))(*x.sort())), expansions)
    places, values = run(found)
    assert values.tolist() == [9, 9, 9] and places.tolist() == [1, 0, 2]


def test_an_expansion_may_give_its_input_back():
    found = everything(program(lambda x: x.sinh().exp()), {"sinh": lambda self: [self]})
    assert names(found) == ["exp"]
    np.testing.assert_allclose(run(found)[0], np.exp(X), rtol=1e-6)


def test_what_drops_elements_by_chance_stays_whole():
    attend = tn.nn.functional.scaled_dot_product_attention
    x = tn.ones(1, 2, 3)
    expansions = {"scaled_dot_product_attention": lambda **given: [given["query"]]}
    kept = program(lambda x: attend(x, x, x, dropout_p=0.5), x)
    assert names(everything(kept, expansions)) == names(kept)
    assert names(everything(program(lambda x: attend(x, x, x), x), expansions)) == []


def test_a_number_that_comes_from_a_tensor_is_given_as_one(monkeypatch):
    monkeypatch.setattr(context, "exporting", True)
    asked = []

    def add(self, other, alpha):
        asked.append(other)
        return [self - (-other)]

    trace = program(lambda x, n: x + n.item(), tn.tensor(X), tn.tensor(4.0), numbers=True)
    found = everything(trace, {"add.Tensor": add, "add.Scalar": add})
    assert len(asked) == 1 and not isinstance(asked[0], tn.Tensor)
    assert "add.Tensor" not in names(found)
    np.testing.assert_allclose(run(found, X, np.float32(4.0))[0], X + 4, rtol=1e-6)


def test_a_program_with_gradients_stays_as_it_is():
    def function(x):
        x.requires_grad_(True)
        x.sinh().sum().backward()
        return x.grad

    trace = program(function)
    assert everything(trace, SINH) is trace


@pytest.mark.parametrize("dim", [0, -1])
def test_lists_of_tensors_are_given_as_lists(dim):
    expansions = {"cat": lambda tensors, dim: [tn.stack(tensors, dim).reshape(-1)]}
    found = everything(program(lambda x: tn.cat([x, x * 2], dim)), expansions)
    expected = np.stack([X, X * 2], dim).reshape(-1)
    np.testing.assert_allclose(run(found)[0], expected)
